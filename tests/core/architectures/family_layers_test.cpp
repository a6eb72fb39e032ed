#include <gtest/gtest.h>

#include <algorithm>

#include "core/architectures/decoder_configs.hpp"
#include "zeroplan/build_model.hpp"

namespace zeroplan {
namespace {

// What layers of single families have beside a Llama's.

const BlockKind& kind_of(const ModelSpec& model, std::size_t block) {
    return model.block_kinds[model.blocks[block].kind];
}

/// Elements that backward reads, each tensor once.
Extent saved(const BlockKind& kind) {
    std::vector<bool> kept(kind.tensors.size(), false);
    for (const Operator& op : kind.operators)
        for (const std::uint32_t tensor : op.saved) kept[tensor] = true;
    Extent sum;
    for (std::size_t t = 0; t < kept.size(); ++t) {
        if (!kept[t]) continue;
        sum.per_token += kind.tensors[t].extent.per_token;
        sum.per_token_pair += kind.tensors[t].extent.per_token_pair;
    }
    return sum;
}

const Operator* find(const BlockKind& kind, const std::string& name) {
    const auto found = std::find_if(kind.operators.begin(), kind.operators.end(),
                                    [&](const Operator& op) { return op.name == name; });
    return found == kind.operators.end() ? nullptr : &*found;
}

/// Four heads, and two of four experts 32 wide.
DecoderConfig small_gpt_oss() {
    DecoderConfig config = small_llama();
    config.family = "gpt_oss";
    config.experts = ExpertConfig{.count = 4,
                                  .per_token = 2,
                                  .intermediate_size = 32,
                                  .biases = true,
                                  .transposed = true,
                                  .clamped = true};
    config.attention_sinks = true;
    return config;
}

TEST(AttentionSinks, AreOneNumberAHead) {
    const ModelSpec model = build_decoder(small_gpt_oss(), {});
    EXPECT_EQ(model.parameters[1].name, "model.layers.0.self_attn.sinks");
    EXPECT_EQ(model.parameters[1].shape, (std::vector<std::uint64_t>{4}));
    const Operator* core = find(kind_of(model, 1), "attention");
    ASSERT_NE(core, nullptr);
    EXPECT_EQ(core->parameters, (std::vector<std::uint32_t>{0}));
}

// The softmax with its column of sinks, and the copy without it that the product with the values reads.
TEST(AttentionSinks, KeepTheSoftmaxTwiceWhenEager) {
    DecoderConfig config = small_gpt_oss();
    const Extent with = saved(kind_of(build_decoder(config, {.attention = AttentionKernel::eager}), 1));
    config.attention_sinks = false;
    const Extent without = saved(kind_of(build_decoder(config, {.attention = AttentionKernel::eager}), 1));
    EXPECT_EQ(with.per_token_pair, 2 * without.per_token_pair);
    EXPECT_EQ(with.per_token - without.per_token, 4U);
}

// Clamped gate, its sigmoid, their product and up + 1, for two experts a token.
TEST(ClampedExperts, KeepFourMoreWidthsUnfused) {
    DecoderConfig config = small_gpt_oss();
    const auto kept = [&](Kernels kernels) {
        return saved(kind_of(build_decoder(config, {.kernels = kernels}), 1)).per_token;
    };
    const std::uint64_t clamped = kept(Kernels::eager), fused = kept(Kernels::fused);
    config.experts->clamped = false;
    EXPECT_EQ(clamped - kept(Kernels::eager), 4 * 2 * 32U);
    EXPECT_EQ(fused, kept(Kernels::fused));
}

// Of four experts a token uses two, with their biases.
TEST(ExpertBiases, AreActiveWithTheirExperts) {
    const ModelSpec model = build_decoder(small_gpt_oss(), {});
    const std::uint64_t expert = 3 * 64 * 32 + 2 * 32 + 64;
    EXPECT_EQ(model.parameter_count() - model.active_parameter_count(), 3 * 2 * expert);
}

/// The second of three layers has no rotary embedding; every second has experts.
DecoderConfig small_llama4() {
    DecoderConfig config = small_llama();
    config.family = "llama4";
    config.experts = ExpertConfig{.count = 4,
                                  .per_token = 1,
                                  .intermediate_size = 32,
                                  .shared_intermediate_size = 32,
                                  .every = 2,
                                  .transposed = true,
                                  .weighs_input = true};
    config.query_key_norm = config.head_norms_after_rope = true;
    config.head_norm_weight = false;
    config.layers_without_rope = {1};
    return config;
}

TEST(UnrotatedLayers, AreAKindOfTheirOwn) {
    const ModelSpec model = build_decoder(small_llama4(), {});
    EXPECT_EQ(model.blocks[1].kind, model.blocks[3].kind);
    EXPECT_NE(model.blocks[1].kind, model.blocks[2].kind);
    EXPECT_NE(find(kind_of(model, 1), "rope"), nullptr);
    EXPECT_EQ(find(kind_of(model, 2), "rope"), nullptr);
    // Their queries are scaled by position instead, and their heads not normed.
    EXPECT_NE(find(kind_of(model, 2), "attention.query.scale"), nullptr);
    EXPECT_EQ(find(kind_of(model, 1), "attention.query.scale"), nullptr);
    EXPECT_EQ(find(kind_of(model, 2), "self_attn.q_norm"), nullptr);
}

TEST(UnrotatedLayers, NormWhatIsRotatedWithoutAWeight) {
    const ModelSpec model = build_decoder(small_llama4(), {});
    const BlockKind& layer = kind_of(model, 1);
    const Operator* rope = find(layer, "rope");
    const Operator* norm = find(layer, "self_attn.q_norm");
    ASSERT_NE(norm, nullptr);
    EXPECT_TRUE(norm->parameters.empty());
    EXPECT_EQ(norm->inputs.front(), rope->outputs.front());
}

// The token and its weight are kept where they meet; the experts' results are only added up.
TEST(WeighedInputs, AreKeptAheadOfTheExperts) {
    const ModelSpec model = build_decoder(small_llama4(), {});
    const BlockKind& layer = kind_of(model, 2);
    EXPECT_EQ(find(layer, "mlp.experts.permute")->saved.size(), 2U);
    EXPECT_TRUE(find(layer, "mlp.experts.combine")->saved.empty());
}

// What was clamped is kept beside what came of it, which attention reads.
TEST(ClippedQueries, KeepThemTwice) {
    DecoderConfig config = small_llama();
    const Extent plain = saved(kind_of(build_llama(config, {.kernels = Kernels::eager}), 1));
    config.clips_qkv = true;
    const Extent clipped = saved(kind_of(build_llama(config, {.kernels = Kernels::eager}), 1));
    // Four heads of queries, two of keys and of values, 16 wide. Rotated or not, attention keeps its own.
    EXPECT_EQ(clipped.per_token - plain.per_token, (4 + 2 + 2) * 16U);
}

TEST(ParameterlessNorms, AreNormsAllTheSame) {
    DecoderConfig config = small_llama();
    config.normalization = "layernorm";
    const ModelSpec biased = build_llama(config, {});
    config.norm_weight = false;
    const ModelSpec model = build_llama(config, {});
    // Two norms in each of three layers and the last, with weight and bias.
    EXPECT_EQ(biased.parameter_count() - model.parameter_count(), 7 * 2 * 64U);
    EXPECT_EQ(saved(kind_of(biased, 1)).per_token, saved(kind_of(model, 1)).per_token);
}

TEST(ScaledLogits, AreOneMoreTensor) {
    DecoderConfig config = small_llama();
    const ModelSpec plain = build_llama(config, {});
    config.scales_logits = true;
    const ModelSpec scaled = build_llama(config, {});
    const BlockKind& head = kind_of(scaled, scaled.blocks.size() - 1);
    ASSERT_NE(find(head, "logits.scale"), nullptr);
    EXPECT_EQ(head.tensors.size(), kind_of(plain, plain.blocks.size() - 1).tensors.size() + 1);
}

TEST(RowsOfHeadNorms, AreOneAHead) {
    DecoderConfig config = small_llama();
    config.query_key_norm = config.head_norm_rows = true;
    config.family = "llama";
    const ModelSpec model = build_decoder(config, {});
    const auto named = [&](const std::string& name) {
        return *std::find_if(model.parameters.begin(), model.parameters.end(),
                             [&](const Parameter& parameter) { return parameter.name == name; });
    };
    EXPECT_EQ(named("model.layers.0.self_attn.q_norm.weight").shape, (std::vector<std::uint64_t>{4, 16}));
    EXPECT_EQ(named("model.layers.0.self_attn.k_norm.weight").shape, (std::vector<std::uint64_t>{2, 16}));
}

}  // namespace
}  // namespace zeroplan
