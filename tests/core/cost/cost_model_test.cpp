#include "zeroplan/cost_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>

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

TEST(CostModel, LinearIsBoundByFlops) {
    // 2e9 flops at 1e14/s · efficiency = 27.8 µs; 6 MB at 1e12/s · 0.85 = 7.1 µs; one kernel.
    const Plan plan = test::test_plan(test::test_cluster(1), {}, layer_buffers());
    const WorkCost cost = model_of(plan).cost(forward());
    EXPECT_DOUBLE_EQ(cost.flops, 2e9);
    EXPECT_DOUBLE_EQ(cost.bytes, 6e6);
    EXPECT_DOUBLE_EQ(cost.seconds,
                     2e9 / (1e14 * value_of("gemm_efficiency_hopper")) + value_of("kernel_start_s"));
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
    EXPECT_DOUBLE_EQ(cost.seconds,
                     4e9 / (1e14 * value_of("gemm_efficiency_hopper")) + 2 * value_of("kernel_start_s"));
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
