#include <gtest/gtest.h>

#include "core/architectures/decoder_configs.hpp"
#include "zeroplan/build_model.hpp"

namespace zeroplan {
namespace {

const BlockKind& layer_of(const ModelSpec& model) {
    return model.block_kinds[model.blocks[1].kind];
}

/// Bytes a token of what the layer's backward reads, each tensor once; its output is the next layer's input.
std::uint64_t saved_bytes_per_token(const ModelSpec& model, DType compute) {
    const BlockKind& layer = layer_of(model);
    // Operators that work in place give one tensor two names.
    std::vector<std::uint32_t> same(layer.tensors.size());
    for (std::uint32_t t = 0; t < same.size(); ++t) same[t] = t;
    for (const Operator& op : layer.operators)
        if (op.in_place)
            for (std::size_t i = 0; i < op.outputs.size(); ++i) same[op.outputs[i]] = same[op.inputs[i]];
    std::vector<bool> saved(layer.tensors.size(), false);
    for (const Operator& op : layer.operators)
        for (const std::uint32_t tensor : op.saved) saved[same[tensor]] = true;
    std::uint64_t bytes = 0;
    for (std::size_t t = 0; t < saved.size(); ++t)
        if (saved[t])
            bytes += layer.tensors[t].extent.per_token *
                     bytes_per_element(resolve(layer.tensors[t].dtype, compute));
    return bytes;
}

TEST(Llama, CountsItsParametersExactly) {
    DecoderConfig config = llama_2_7b_config();
    EXPECT_EQ(build_llama(config, {}).parameter_count(), 6738415616U);
    config.tie_word_embeddings = true;
    EXPECT_EQ(build_llama(config, {}).parameter_count(), 6738415616U - 32000U * 4096U);
}

TEST(Llama, RegistersParametersInHuggingFaceOrder) {
    const ModelSpec model = build_llama(llama_2_7b_config(), {});
    std::vector<std::string> names;
    for (std::size_t i = 0; i < 11; ++i) names.push_back(model.parameters[i].name);
    EXPECT_EQ(names.front(), "model.embed_tokens.weight");
    EXPECT_EQ(names[1], "model.layers.0.self_attn.q_proj.weight");
    EXPECT_EQ(names[7], "model.layers.0.mlp.down_proj.weight");
    EXPECT_EQ(names[9], "model.layers.0.post_attention_layernorm.weight");
    EXPECT_EQ(names[10], "model.layers.1.self_attn.q_proj.weight");
    EXPECT_EQ(model.parameters.back().name, "lm_head.weight");
    EXPECT_EQ(model.parameters[7].shape, (std::vector<std::uint64_t>{4096, 11008}));
}

// Two residual streams, two norm outputs, q, k, v, attention output, gate, up and their product, 16-bit each;
// fp32 log-sum-exp a head and one fp32 statistic a norm.
TEST(Llama, ALayerSavesEightHiddenAndThreeIntermediate) {
    const std::uint64_t h = 4096, f = 11008, a = 32;
    EXPECT_EQ(saved_bytes_per_token(build_llama(llama_2_7b_config(), {}), DType::bf16),
              2 * (8 * h + 3 * f) + 4 * a + 2 * 4);
}

TEST(Llama, UnfusedKernelsKeepMore) {
    const std::uint64_t fused = saved_bytes_per_token(build_llama(llama_2_7b_config(), {}), DType::bf16);
    const std::uint64_t eager =
        saved_bytes_per_token(build_llama(llama_2_7b_config(), {.kernels = Kernels::eager}), DType::bf16);
    const std::uint64_t h = 4096, f = 11008;
    // silu(gate); and for each norm an fp32 copy of its input and the normalised value instead of the input
    // itself
    EXPECT_EQ(eager - fused, 2 * f + 2 * (4 * h + 2 * h - 2 * h));
}

TEST(Llama, LinearsCountTwoOperationsAWeight) {
    const ModelSpec model = build_llama(llama_2_7b_config(), {});
    std::uint64_t forward = 0, backward = 0;
    for (const Operator& op : layer_of(model).operators) {
        if (op.kind != OperatorKind::linear) continue;
        forward += op.forward_flops.per_token;
        backward += op.backward_flops.per_token;
    }
    const std::uint64_t weights = 202383360 - 2 * 4096;
    EXPECT_EQ(forward, 2 * weights);
    EXPECT_EQ(backward, 4 * weights);
}

TEST(Llama, EagerAttentionKeepsTheSoftmax) {
    const ModelSpec model = build_llama(llama_2_7b_config(), {.attention = AttentionKernel::eager});
    std::uint64_t saved_pairs = 0;
    for (const Operator& op : layer_of(model).operators)
        if (op.kind == OperatorKind::attention_values)
            saved_pairs = layer_of(model).tensors[op.saved[0]].extent.per_token_pair;
    EXPECT_EQ(saved_pairs, 32U);
}

/// Saved elements a token pair by dtype, each tensor once, of what is dropped and what is kept by selective
/// recompute.
struct SavedPairs {
    std::uint64_t compute = 0, fp32 = 0, mask = 0, kept = 0;
};
SavedPairs saved_pairs(const ModelSpec& model) {
    const BlockKind& layer = layer_of(model);
    std::vector<bool> saved(layer.tensors.size(), false), dropped(layer.tensors.size(), false);
    for (const Operator& op : layer.operators) {
        for (const std::uint32_t tensor : op.saved) saved[tensor] = true;
        for (const std::uint32_t tensor : op.outputs) dropped[tensor] = op.attention_core;
    }
    SavedPairs pairs;
    for (std::size_t t = 0; t < saved.size(); ++t) {
        const std::uint64_t count = saved[t] ? layer.tensors[t].extent.per_token_pair : 0;
        if (layer.tensors[t].dtype == TensorDType::compute) pairs.compute += count;
        if (layer.tensors[t].dtype == TensorDType::fp32) pairs.fp32 += count;
        if (layer.tensors[t].dtype == TensorDType::mask) pairs.mask += count;
        if (!dropped[t]) pairs.kept += count;
    }
    return pairs;
}

// Korthikanti et al. 2022: 5·heads bytes a token pair (softmax 2, its dropout's mask 1 and output 2), all of
// which selective recompute drops; what else is saved stays.
TEST(Gpt2, SelectiveRecomputeDropsTheAttentionMatrices) {
    const ModelSpec model = build_gpt2(gpt2_config(), {.attention = AttentionKernel::eager, .dropout = true});
    const SavedPairs pairs = saved_pairs(model);
    EXPECT_EQ(2 * pairs.compute + pairs.mask, 5 * 12U);
    EXPECT_EQ(pairs.kept, 0U);
    for (const Operator& op : layer_of(model).operators) {
        const bool is_values = op.kind == OperatorKind::attention_values;
        EXPECT_FALSE(is_values && op.attention_core);
    }
    const ModelSpec flash = build_gpt2(gpt2_config(), {});
    for (const Operator& op : layer_of(flash).operators) EXPECT_FALSE(op.attention_core);
}

TEST(Llama, EagerKernelsRepeatSharedHeadsAndKeepTheSoftmaxInFp32) {
    DecoderConfig config = llama_2_7b_config();
    config.num_key_value_heads = 8;
    const LoweringOptions eager{.attention = AttentionKernel::eager, .kernels = Kernels::eager};
    const SavedPairs pairs = saved_pairs(build_llama(config, eager));
    EXPECT_EQ(pairs.compute, 32U);
    EXPECT_EQ(pairs.fp32, 32U);
    // k and v of 32 heads instead of 8 are kept; those of 8 are not.
    LoweringOptions flash = eager;
    flash.attention = AttentionKernel::flash;
    EXPECT_EQ(
        saved_bytes_per_token(build_llama(config, eager), DType::bf16),
        saved_bytes_per_token(build_llama(config, flash), DType::bf16) + 2 * 2 * (32 - 8) * 128 - 4 * 32);
}

TEST(Llama, UpcastsNothingInFp32) {
    const LoweringOptions options{.kernels = Kernels::eager, .compute_dtype = DType::fp32};
    const ModelSpec model = build_llama(llama_2_7b_config(), options);
    for (const BlockKind& kind : model.block_kinds)
        for (const Operator& op : kind.operators) EXPECT_NE(op.kind, OperatorKind::cast);
    // Beside the input, the normalised value of each norm and act(gate).
    EXPECT_EQ(saved_bytes_per_token(model, DType::fp32), 4 * (10 * 4096 + 4 * 11008) + 4 * 32 + 2 * 4U);
}

TEST(Gpt2, CountsItsParametersExactly) {
    const ModelSpec model = build_gpt2(gpt2_config(), {});
    EXPECT_EQ(model.parameter_count(), 124439808U);
    EXPECT_EQ(model.parameters.back().shared_with, 0U);
    EXPECT_EQ(model.parameters[3].name, "transformer.h.0.ln_1.bias");
    EXPECT_EQ(model.parameters[4].shape, (std::vector<std::uint64_t>{768, 2304}));
}

// Korthikanti et al. 2022 count 34·h bytes a token with three dropout masks and without the attention matrix:
// norm inputs 4, QKV input 2, QKV 6, projection input 2, MLP input 2, GELU input 8, second linear's input 8,
// masks 2.
TEST(Gpt2, ALayerSavesWhatThePaperCounts) {
    const std::uint64_t h = 768, a = 12;
    const std::uint64_t statistics = 2 * 2 * 4, log_sum_exp = 4 * a;
    EXPECT_EQ(saved_bytes_per_token(build_gpt2(gpt2_config(), {}), DType::bf16),
              32 * h + statistics + log_sum_exp);
    EXPECT_EQ(saved_bytes_per_token(build_gpt2(gpt2_config(), {.dropout = true}), DType::bf16),
              34 * h + statistics + log_sum_exp);
}

TEST(PlainStack, ChainsLinearsAndEndsInALoss) {
    const ModelSpec model = build_plain_stack(
        "mlp", {{100, 50, true, ActivationFunction::relu}, {50, 100, false, ActivationFunction::none}},
        "mse");
    EXPECT_EQ(model.parameter_count(), 100U * 50 + 50 + 50 * 100);
    ASSERT_EQ(model.blocks.size(), 2U);
    EXPECT_TRUE(model.target_is_input);
    EXPECT_EQ(model.parameters[1].name, "layers.0.linear.bias");
    EXPECT_EQ(model.block_kinds[model.blocks[1].kind].operators.back().kind,
              OperatorKind::mean_squared_error);
}

TEST(PlainStack, ReusesEqualKinds) {
    const ModelSpec model = build_plain_stack("mlp", std::vector<StackLayer>(10, {64, 64}), "mse");
    EXPECT_EQ(model.block_kinds.size(), 3U);
}

TEST(PlainStack, NamesBothSizesThatDoNotMeet) {
    try {
        build_plain_stack("mlp", {{100, 50}, {60, 100}}, "mse");
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.message(), "layer 1 takes 60 features, layer 0 gives 50");
        EXPECT_EQ(error.place().pointer, "/model/layers/1/linear/0");
    }
    EXPECT_THROW(build_plain_stack("mlp", {{100, 50}}, "mse"), Error);
    EXPECT_THROW(build_plain_stack("mlp", {{100, 50}}, "hinge"), Error);
    EXPECT_THROW(build_plain_stack("mlp", {}, "mse"), Error);
    EXPECT_THROW(build_plain_stack("mlp", {{0, 50}}, "mse"), Error);
}

}  // namespace
}  // namespace zeroplan
