#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/engines/program_hazards.hpp"
#include "core/engines/torch_scenarios.hpp"
#include "engines/engine.hpp"
#include "zeroplan/memory_timeline.hpp"

namespace zeroplan {
namespace {

/// A small Llama in bf16 on `ranks` GPUs, eight a node, with these keys of zero_optimization.
Scenario deepspeed(std::uint64_t ranks, std::uint32_t stage, const std::string& keys) {
    Scenario scenario =
        torch_scenario(EngineKind::deepspeed, build_llama(small_llama(), torch_lowering()), ranks, stage);
    TrainingConfig& training = scenario.training;
    training.parameter_dtype = training.gradient_dtype = training.reduce_dtype = DType::bf16;
    training.master_dtype = DType::fp32;
    training.deepspeed_json = fmt::format(R"({{"zero_optimization": {{{}}}}})", keys);
    scenario.cluster.gpus_per_node = 8;
    return scenario;
}

StepProgram first_program(const Scenario& scenario) {
    StepProgram program = run_engine(scenario).programs.front();
    const auto found = hazards(program);
    EXPECT_TRUE(found.empty()) << found.front();
    return program;
}

std::uint64_t bytes_of(const StepProgram& program, const std::vector<BufferId>& buffers, Category category,
                       DType dtype) {
    std::uint64_t bytes = 0;
    for (const BufferId id : buffers)
        if (program.buffers[id].category == category && program.buffers[id].dtype == dtype)
            bytes += program.buffers[id].elements * bytes_per_element(dtype);
    return bytes;
}

std::uint64_t host_stepped(const StepProgram& program) {
    std::uint64_t elements = 0;
    for (const Section& section : program.step)
        for (const Operation& operation : section.operations)
            if (const auto* step = std::get_if<HostStep>(&operation.body)) elements += step->elements;
    return elements;
}

/// Bytes of collectives of one kind in a step's program.
std::uint64_t communicated(const StepProgram& program, CollectiveKind kind) {
    std::uint64_t bytes = 0;
    for (const Section& section : program.step)
        for (const Operation& operation : section.operations)
            if (const auto* c = std::get_if<Collective>(&operation.body))
                if (c->kind == kind) bytes += section.repeat * c->elements * bytes_per_element(c->dtype);
    return bytes;
}

constexpr std::uint64_t layer = 2 * 64 * 64 + 2 * 32 * 64 + 3 * 160 * 64 + 2 * 64,
                        model_size = 3 * layer + 41'024;

TEST(DeepSpeedKeys, TheRatioLeavesTheFirstSubGroupsToTheDevice) {
    // Sub-groups of one parameter or so: all are cut into pieces of at least 1000 of a rank's elements.
    Scenario scenario = deepspeed(4, 3, R"("sub_group_size": 1000)");
    scenario.training.offload_optimizer = OffloadTarget::cpu;
    const StepProgram all = first_program(scenario);
    EXPECT_EQ(host_stepped(all), model_size / 4);
    EXPECT_EQ(bytes_of(all, resident_buffers(all), Category::master_weights, DType::fp32), 0U);
    scenario.training.offload_fraction = 0.5;
    const StepProgram half = first_program(scenario);
    const std::uint64_t masters =
        bytes_of(half, resident_buffers(half), Category::master_weights, DType::fp32);
    EXPECT_GT(masters, 0U);
    EXPECT_EQ(host_stepped(half) + masters / 4, model_size / 4);
    EXPECT_EQ(bytes_of(half, resident_buffers(half), Category::gradients, DType::fp32), masters);
}

TEST(DeepSpeedKeys, QuantisedGradientsWantSeveralNodes) {
    const std::string keys = R"("zero_quantized_gradients": true)";
    const std::uint64_t one =
        communicated(first_program(deepspeed(8, 3, keys)), CollectiveKind::reduce_scatter);
    EXPECT_EQ(one, communicated(first_program(deepspeed(8, 3, "")), CollectiveKind::reduce_scatter));
    EXPECT_EQ(run_engine(deepspeed(8, 3, keys)).warnings.front().code, "no_effect");
    const std::uint64_t two =
        communicated(first_program(deepspeed(16, 3, keys)), CollectiveKind::reduce_scatter);
    EXPECT_EQ(4 * two, communicated(first_program(deepspeed(16, 3, "")), CollectiveKind::reduce_scatter));
}

TEST(DeepSpeedKeys, LocoKeepsErrorsOfEveryMatrix) {
    const std::string quantised = R"("zero_quantized_gradients": true)";
    const StepProgram without = first_program(deepspeed(16, 3, quantised));
    const StepProgram with = first_program(
        deepspeed(16, 3, quantised + R"(, "zeropp_loco_param": {"err_beta": 0.8, "reset_T": 1024})"));
    EXPECT_EQ(bytes_of(without, resident_buffers(without), Category::gradients, DType::uint8), 0U);
    // All but seven norms of 64: 8 bits for the hop inside the node, an eighth for the one between.
    constexpr std::uint64_t matrices = model_size - 7 * 64;
    EXPECT_EQ(bytes_of(with, resident_buffers(with), Category::gradients, DType::uint8),
              matrices + matrices / 8);
}

TEST(DeepSpeedKeys, FetchingByAllReduceSumsInsteadOfGathering) {
    const std::string keys = R"("stage3_param_persistence_threshold": 0)";
    const StepProgram plain = first_program(deepspeed(4, 3, keys));
    const StepProgram sums =
        first_program(deepspeed(4, 3, keys + R"(, "stage3_use_all_reduce_for_fetch_params": true)"));
    EXPECT_EQ(communicated(plain, CollectiveKind::all_reduce), 0U);
    const std::uint64_t summed = communicated(sums, CollectiveKind::all_reduce);
    EXPECT_GT(summed, 0U);  // what is fetched alone is gathered as ever
    EXPECT_EQ(summed + communicated(sums, CollectiveKind::all_gather),
              communicated(plain, CollectiveKind::all_gather));
}

TEST(DeepSpeedKeys, Stage2SumsInTheAccumulationsDtype) {
    Scenario scenario = deepspeed(1, 2, "");
    scenario.training.gradient_accumulation_steps = 2;
    const auto wide_sums = [&] {
        const StepProgram program = first_program(scenario);
        std::uint64_t bytes = 0;
        for (const Operation& operation : program.step.front().operations)
            if (const auto* a = std::get_if<Allocate>(&operation.body))
                bytes += bytes_of(program, {a->buffer}, Category::gradients, DType::fp32);
        return bytes;
    };
    EXPECT_EQ(wide_sums(), 0U);
    scenario.training.gradient_dtype = DType::fp32;
    EXPECT_EQ(wide_sums(), 4 * model_size);
}

TEST(DeepSpeedKeys, Stage3WithoutMasterKeepsItInTheParametersDtype) {
    Scenario scenario = deepspeed(4, 3, "");
    scenario.training.master_dtype = std::nullopt;
    const StepProgram program = first_program(scenario);
    EXPECT_EQ(bytes_of(program, resident_buffers(program), Category::master_weights, DType::bf16),
              2 * model_size / 4);
}

TEST(DeepSpeedKeys, WarnOfCheckpointingThatThePlanDoesNotChangeWith) {
    Scenario scenario = deepspeed(8, 3, "");
    const auto warnings = [&](const char* json) {
        scenario.training.deepspeed_json = json;
        return run_engine(scenario).warnings.size();
    };
    EXPECT_EQ(warnings(R"({"activation_checkpointing": {"cpu_checkpointing": true}})"), 1U);
    EXPECT_EQ(warnings(R"({"activation_checkpointing": {"partition_activations": true}})"), 1U);
    EXPECT_EQ(warnings(R"({"zero_optimization": {"stage3_module_granularity_threshold": 5000}})"), 1U);
    EXPECT_EQ(warnings("{}"), 0U);
}

}  // namespace
}  // namespace zeroplan
