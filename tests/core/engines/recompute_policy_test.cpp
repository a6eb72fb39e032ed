#include "engines/recompute_policy.hpp"

#include <gtest/gtest.h>

#include "core/engines/torch_scenarios.hpp"

namespace zeroplan {
namespace {

ModelSpec eager_llama() {
    LoweringOptions options = torch_lowering();
    options.attention = AttentionKernel::eager;
    return build_llama(small_llama(), options);
}

// Blocks: embedding, three layers, head.
TEST(RecomputePolicy, RunsLayersAgainAllOrEveryOther) {
    TrainingConfig training;
    training.recompute = Recompute::full;
    EXPECT_EQ(recompute_policy(eager_llama(), training).checkpointed,
              (std::vector<bool>{false, true, true, true, false}));
    training.recompute = Recompute::selective_layer;
    training.recompute_every = 2;
    EXPECT_EQ(recompute_policy(eager_llama(), training).checkpointed,
              (std::vector<bool>{false, true, false, true, false}));
}

TEST(RecomputePolicy, DropsWhatTheAttentionCoreMakes) {
    const ModelSpec model = eager_llama();
    TrainingConfig training;
    training.recompute = Recompute::selective;
    const RecomputePolicy policy = recompute_policy(model, training);
    const std::uint32_t layer = model.blocks[1].kind;
    ASSERT_EQ(policy.segments[layer].size(), 1U);
    const RecomputeSegment& core = policy.segments[layer][0];
    const std::vector<std::uint32_t>& inputs = core.inputs;
    EXPECT_EQ(inputs.size(), 2U);  // query and key: the product with the values is not part of it
    for (const std::uint32_t tensor : inputs) EXPECT_FALSE(core.made[tensor]);
    for (const Operator& op : model.block_kinds[layer].operators)
        for (const std::uint32_t tensor : op.outputs)
            EXPECT_EQ(core.made[tensor], op.attention_core) << op.name;
}

// Nothing reads the last product's output again but the next layer, which has it.
TEST(RecomputePolicy, StopsAtTheLastTensorThatBackwardReads) {
    const ModelSpec model = eager_llama();
    TrainingConfig training;
    training.recompute = Recompute::full;
    const RecomputePolicy policy = recompute_policy(model, training);
    const std::uint32_t layer = model.blocks[1].kind;
    EXPECT_FALSE(policy.wanted[layer].back());
    EXPECT_TRUE(policy.wanted[layer].front());
}

}  // namespace
}  // namespace zeroplan
