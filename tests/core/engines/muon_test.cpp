#include "engines/muon.hpp"

#include <gtest/gtest.h>

#include "core/engines/program_hazards.hpp"
#include "core/engines/torch_scenarios.hpp"
#include "engines/engine.hpp"

namespace zeroplan {
namespace {

Scenario muon(EngineKind engine, std::uint64_t ranks, std::uint32_t stage) {
    Scenario scenario = torch_scenario(engine, build_llama(small_llama(), torch_lowering()), ranks, stage);
    scenario.training.optimizer = Optimizer::muon;
    if (engine == EngineKind::deepspeed) {
        scenario.training.parameter_dtype = scenario.training.gradient_dtype =
            scenario.training.reduce_dtype = DType::bf16;
        scenario.training.master_dtype = DType::fp32;
    }
    return scenario;
}

StepProgram first_program(const Scenario& scenario) {
    StepProgram program = run_engine(scenario).programs.front();
    const auto found = hazards(program);
    EXPECT_TRUE(found.empty()) << found.front();
    return program;
}

/// Bytes of the optimizer's states.
std::uint64_t state_bytes(const StepProgram& program) {
    std::uint64_t bytes = 0;
    for (const Buffer& buffer : program.buffers)
        if (buffer.category == Category::optimizer_states)
            bytes += buffer.elements * bytes_per_element(buffer.dtype);
    return bytes;
}

std::uint64_t matrices_of_a_step(const StepProgram& program) {
    std::uint64_t count = 0;
    for (const Section& section : program.step)
        for (const Operation& operation : section.operations)
            if (const auto* step = std::get_if<OptimizerStep>(&operation.body))
                for (const Orthogonalised& matrices : step->orthogonalised) count += matrices.count;
    return count;
}

// Three layers of 64² twice, 32 · 64 twice and 160 · 64 three times; embedding and head of 320 · 64 and seven
// norms are Adam's.
constexpr std::uint64_t hidden = 3 * (2 * 4096 + 2 * 2048 + 3 * 10240), adams = 2 * 20480 + 7 * 64;

TEST(Muon, TrainsHiddenMatricesAlone) {
    const ModelSpec model = build_llama(small_llama(), torch_lowering());
    std::vector<std::uint32_t> all;
    for (std::uint32_t p = 0; p < model.parameters.size(); ++p) all.push_back(p);
    std::uint64_t elements = 0, count = 0;
    for (const Orthogonalised& matrices : muon_matrices(model, all)) {
        elements += matrices.count * matrices.rows * matrices.columns;
        count += matrices.count;
    }
    EXPECT_EQ(count, 21U);
    EXPECT_EQ(elements, hidden);
    // The iterate twice and two squares of 64: 2 · 10240 + 2 · 4096.
    EXPECT_EQ(orthogonalising_workspace(muon_matrices(model, all)), 28'672U);
}

TEST(Muon, DdpOrthogonalisesEveryMatrixOnEveryRank) {
    const StepProgram program = first_program(muon(EngineKind::ddp, 4, 0));
    EXPECT_EQ(state_bytes(program), 4 * hidden + 8 * adams);
    EXPECT_EQ(matrices_of_a_step(program), 21U);
}

TEST(Muon, Fsdp2GathersMatricesInBf16) {
    const StepProgram program = first_program(muon(EngineKind::fsdp2, 4, 3));
    EXPECT_EQ(state_bytes(program), (4 * hidden + 8 * adams) / 4);
    EXPECT_EQ(matrices_of_a_step(program), 21U);
    std::uint64_t gathered = 0;
    for (const Operation& operation : program.step.back().operations)
        if (const auto* c = std::get_if<Collective>(&operation.body))
            if (c->kind == CollectiveKind::all_gather &&
                program.buffers[c->receive.buffer].role == BufferRole::workspace)
                gathered += c->elements;
    EXPECT_EQ(gathered, hidden);
}

TEST(Muon, DeepSpeedsPartitionKeepsMomentumOfWholeMatrices) {
    // One rank's partition is everything; of four the one that overlaps most has more than its quarter.
    const StepProgram one = first_program(muon(EngineKind::deepspeed, 1, 2));
    EXPECT_EQ(state_bytes(one), 2 * hidden + 8 * adams);
    const StepProgram four = first_program(muon(EngineKind::deepspeed, 4, 2));
    EXPECT_GT(state_bytes(four), (2 * hidden + 8 * adams) / 4);
    EXPECT_LT(state_bytes(four), 2 * hidden + 8 * adams);
    EXPECT_GE(matrices_of_a_step(four), 21U / 4);
}

TEST(Muon, DeepSpeedsStage3KeepsShardsOfMomentumInTheReductionsDtype) {
    Scenario scenario = muon(EngineKind::deepspeed, 4, 3);
    scenario.training.deepspeed_json = R"({"zero_optimization": {"reduce_scatter": false}})";
    const StepProgram narrow = first_program(scenario);
    EXPECT_EQ(state_bytes(narrow), (2 * hidden + 8 * adams) / 4);
    scenario.training.reduce_dtype = DType::fp32;
    EXPECT_EQ(state_bytes(first_program(scenario)), (4 * hidden + 8 * adams) / 4);
    // One bucket: 6, 6, 6 and 3 matrices of equal shapes over four ranks.
    EXPECT_EQ(matrices_of_a_step(narrow), 2U + 2U + 2U + 1U);
}

}  // namespace
}  // namespace zeroplan
