#include "zeroplan/cost_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/cost/tiny_plan.hpp"

namespace zeroplan {
namespace {

double value_of(const std::string& name) {
    const std::vector<Constant> constants = cost_constants();
    const auto found =
        std::find_if(constants.begin(), constants.end(), [&](const auto& c) { return c.name == name; });
    EXPECT_NE(found, constants.end()) << name;
    return found->value;
}

CostModel model_of(const Plan& plan) {
    return {plan.scenario.model, plan.scenario.training, plan.scenario.cluster, plan.layout,
            plan.programs[0]};
}

// Buffers of one million elements: input, output, unit's parameters, its gradients, gradients of both.
std::vector<Buffer> layer_buffers() {
    const Buffer tensor{.role = BufferRole::activation, .dtype = DType::bf16, .elements = 1'000'000};
    return {tensor, tensor, tensor, tensor, tensor, tensor};
}

Compute forward() {
    return {.phase = ComputePhase::forward,
            .arguments = {
                {ArgumentRole::input, 0, 0}, {ArgumentRole::output, 0, 1}, {ArgumentRole::parameters, 0, 2}}};
}
Compute backward() {
    return {.phase = ComputePhase::backward,
            .arguments = {{ArgumentRole::grad_output, 0, 4},
                          {ArgumentRole::saved, 0, 0},
                          {ArgumentRole::parameters, 0, 2},
                          {ArgumentRole::gradients, 0, 3},
                          {ArgumentRole::grad_input, 0, 5}}};
}

TEST(CostConstants, EachHasUnitSourceAndKind) {
    for (const Constant& c : cost_constants()) {
        EXPECT_GT(c.value, 0) << c.name;
        EXPECT_FALSE(c.name.empty() || c.unit.empty() || c.source.empty() || c.kind.empty()) << c.name;
    }
}

/// Of 1000³: 8 · 8 tiles of 128 hold 1024 · 1024, and a depth of 1000 takes the time of 1128.
constexpr double shape_of_1000 = 1000.0 / 1024 * 1000 / 1024 * 1000 / 1128;

TEST(CostModel, LinearIsBoundByFlops) {
    // 2e9 flops at 1e14/s · efficiency · shape = 44.6 µs; 6 MB at 1e12/s · 0.85 = 7.1 µs; one kernel.
    const Plan plan = test::test_plan(test::test_cluster(1), {}, layer_buffers());
    const WorkCost cost = model_of(plan).cost(forward());
    EXPECT_DOUBLE_EQ(cost.flops, 2e9);
    EXPECT_DOUBLE_EQ(cost.bytes, 6e6);
    EXPECT_DOUBLE_EQ(cost.seconds, 2e9 / (1e14 * value_of("gemm_efficiency_hopper") * shape_of_1000) +
                                       value_of("kernel_start_s"));
}

TEST(CostModel, WideProductsReachMoreThanNarrowOnes) {
    Plan plan = test::test_plan(test::test_cluster(1), {}, layer_buffers());
    plan.scenario.cluster.gpu.hbm_bytes_per_s = 1e18;
    Operator& op = plan.scenario.model.block_kinds[0].operators[0];
    double before = 0;
    for (const std::uint64_t width : {128U, 1024U, 8192U}) {
        op.in_features = op.out_features = width;
        op.forward_flops.per_token = 2 * width * width;
        const WorkCost cost = model_of(plan).cost(forward());
        const double rate = cost.flops / (cost.seconds - value_of("kernel_start_s"));
        EXPECT_GT(rate, before) << width;
        before = rate;
    }
    // 1000 rows of 1024, depth 8192 of 8320.
    EXPECT_NEAR(before / (1e14 * value_of("gemm_efficiency_hopper")), 1000.0 / 1024 * 8192 / 8320, 1e-9);
}

TEST(CostModel, Fp8CastsItsOperandsAndLeavesTheOutputLayerAlone) {
    Plan plan = test::test_plan(test::test_cluster(1), {}, layer_buffers());
    plan.scenario.cluster.gpu.fp8_flop_per_s = 2e14;
    plan.scenario.training.compute_dtype = DType::fp8;
    // 1e6 input and 1e6 weight elements, 6 B each; delayed scaling saves the pass for the maximum.
    const double memory = 1e12 * value_of("memory_efficiency"),
                 product = 2e9 / (2e14 * value_of("gemm_efficiency_hopper") * shape_of_1000);
    EXPECT_NEAR(model_of(plan).cost(forward()).seconds,
                product + 2e6 * 6 / memory + value_of("kernel_start_s"), 1e-12);
    plan.scenario.training.fp8_json = R"({"recipe":"delayed"})";
    EXPECT_NEAR(model_of(plan).cost(forward()).seconds,
                product + 2e6 * 4 / memory + value_of("kernel_start_s"), 1e-12);
    plan.scenario.model.block_kinds[0].is_layer = false;
    EXPECT_NEAR(model_of(plan).cost(forward()).seconds, 2 * product + value_of("kernel_start_s"), 1e-12);
}

TEST(CostModel, APowerLimitLowersTheClockByItsCubeRoot) {
    Plan plan = test::test_plan(test::test_cluster(1), {}, layer_buffers());
    const double start = value_of("kernel_start_s"), free = model_of(plan).cost(forward()).seconds - start;
    plan.scenario.cluster.power_limit_watts = 500;  // of 700
    EXPECT_NEAR(model_of(plan).cost(forward()).seconds - start, free * std::cbrt(7.0 / 5), 1e-12);
    plan.scenario.cluster.power_limit_watts = 700;
    EXPECT_DOUBLE_EQ(model_of(plan).cost(forward()).seconds - start, free);
}

TEST(CostModel, LinearIsBoundByBytesWhereMemoryIsSlow) {
    ClusterSpec cluster = test::test_cluster(1);
    cluster.gpu.hbm_bytes_per_s = 1e10;
    const Plan plan = test::test_plan(cluster, {}, layer_buffers());
    EXPECT_DOUBLE_EQ(model_of(plan).cost(forward()).seconds,
                     6e6 / (1e10 * value_of("memory_efficiency")) + value_of("kernel_start_s"));
}

TEST(CostModel, BackwardOfLinearIsTwoProducts) {
    const Plan plan = test::test_plan(test::test_cluster(1), {}, layer_buffers());
    const WorkCost cost = model_of(plan).cost(backward());
    EXPECT_DOUBLE_EQ(cost.flops, 4e9);
    EXPECT_DOUBLE_EQ(cost.bytes, 10e6);
    EXPECT_DOUBLE_EQ(cost.seconds, 4e9 / (1e14 * value_of("gemm_efficiency_hopper") * shape_of_1000) +
                                       2 * value_of("kernel_start_s"));
}

TEST(CostModel, AddingToGradientsReadsThemToo) {
    const Plan plan = test::test_plan(test::test_cluster(1), {}, layer_buffers());
    Compute compute = backward();
    compute.accumulate_after_first = true;
    EXPECT_DOUBLE_EQ(model_of(plan).cost(compute).bytes, 12e6);
}

TEST(CostModel, FusedAttentionComputesTheLowerTriangle) {
    Plan plan = test::test_plan(test::test_cluster(1), {}, layer_buffers());
    Operator& op = plan.scenario.model.block_kinds[0].operators[0];
    op.kind = OperatorKind::attention;
    op.parameters = {};
    op.forward_flops = {.per_token_pair = 4000};  // 4e9 over 1000 × 1000 pairs
    const WorkCost cost = model_of(plan).cost(forward());
    EXPECT_DOUBLE_EQ(cost.flops, 2e9);
    EXPECT_DOUBLE_EQ(cost.seconds, 2e9 / (1e14 * value_of("attention_forward_efficiency_hopper")) +
                                       value_of("kernel_start_s"));
}

TEST(CostModel, OnlyTheOperatorsPartOfAUnitMoves) {
    std::vector<Buffer> buffers = layer_buffers();
    buffers[2].elements = 500'000'000;  // the unit's whole flat buffer
    const Plan plan = test::test_plan(test::test_cluster(1), {}, buffers);
    EXPECT_DOUBLE_EQ(model_of(plan).cost(forward()).bytes, 6e6);
}

TEST(CostModel, EmbeddingReadsTheRowsLookedUp) {
    Plan plan = test::test_plan(test::test_cluster(1), {}, layer_buffers());
    Operator& op = plan.scenario.model.block_kinds[0].operators[0];
    op.kind = OperatorKind::embedding;
    op.forward_flops = {};
    plan.scenario.model.parameters[0].numel = 128'000'000;
    // ids 2 MB (bf16 stands in), rows 2 MB read, 2 MB written; not the 256 MB table.
    EXPECT_DOUBLE_EQ(model_of(plan).cost(forward()).bytes, 6e6);
}

TEST(CostModel, AdamWithMasterMoves28BytesAnElement) {
    std::vector<Buffer> buffers;
    for (const DType dtype : {DType::bf16, DType::bf16, DType::fp32, DType::fp32, DType::fp32})
        buffers.push_back({.dtype = dtype, .elements = 1'000'000});
    const Plan plan = test::test_plan(test::test_cluster(1), {}, buffers);
    // write 2, read 2, read and write 4 + 4 + 4: 28 B
    const OptimizerStep step{.parameters = {0},
                             .gradients = {1},
                             .master = {2},
                             .momentum = {3},
                             .variance = {4},
                             .elements = 1'000'000};
    EXPECT_DOUBLE_EQ(model_of(plan).cost(step).bytes, 28e6);
}

TEST(CostModel, SgdReadsAndWritesParametersWithoutMaster) {
    const std::vector<Buffer> buffers(2, {.dtype = DType::fp32, .elements = 1'000'000});
    const Plan plan = test::test_plan(test::test_cluster(1), {}, buffers);
    const OptimizerStep step{.parameters = {0}, .gradients = {1}, .elements = 500'000};
    EXPECT_DOUBLE_EQ(model_of(plan).cost(step).bytes, 0.5e6 * (8 + 4));
}

TEST(CostModel, AccumulateOfASliceMovesTheSlice) {
    const std::vector<Buffer> buffers(2, {.dtype = DType::fp32, .elements = 8'000'000});
    Plan plan = test::test_plan(test::test_cluster(1), {}, buffers);
    EXPECT_DOUBLE_EQ(model_of(plan).cost(Accumulate{.from = {0, true}, .to = {1, true}}).bytes, 1e6 * 12);
}

TEST(CostModel, AccumulateIntoAFlatBufferMovesOneTensor) {
    // A bf16 gradient of 1e6 elements is read, its place in the fp32 buffer read and written.
    const std::vector<Buffer> buffers{{.dtype = DType::bf16, .elements = 1'000'000},
                                      {.dtype = DType::fp32, .elements = 500'000'000}};
    Plan plan = test::test_plan(test::test_cluster(1), {}, buffers);
    EXPECT_DOUBLE_EQ(model_of(plan).cost(Accumulate{.from = {0}, .to = {1}}).bytes, 1e6 * (2 + 4 + 4));
}

TEST(CostModel, AccumulateBetweenFlatBuffersMovesWhatItStates) {
    // A bf16 gradient of 1e6 elements on its way from one flat buffer to another.
    const std::vector<Buffer> buffers(2, {.dtype = DType::bf16, .elements = 500'000'000});
    Plan plan = test::test_plan(test::test_cluster(1), {}, buffers);
    const Accumulate copy{.from = {0}, .to = {1}, .elements = 1'000'000};
    EXPECT_DOUBLE_EQ(model_of(plan).cost(copy).bytes, 1e6 * (2 + 2 + 2));
}

TEST(CostModel, NamesTheDtypeAGpuLacks) {
    ClusterSpec cluster = test::test_cluster(1);
    cluster.gpu.bf16_flop_per_s = 0;
    cluster.gpu.fp16_flop_per_s = 1e14;
    const Plan plan = test::test_plan(cluster, {}, layer_buffers());
    try {
        model_of(plan);
        FAIL() << "no error";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::not_supported);
        EXPECT_EQ(error.place().pointer, "/training/compute_dtype");
        EXPECT_NE(error.message().find("bf16"), std::string::npos);
        EXPECT_NE(error.message().find("test-gpu"), std::string::npos);
        EXPECT_NE(error.hint().find("fp16"), std::string::npos);
    }
}

}  // namespace
}  // namespace zeroplan
