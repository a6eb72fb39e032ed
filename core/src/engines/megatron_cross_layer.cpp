#include "architectures/fixed_length.hpp"
#include "engines/megatron_attention.hpp"
#include "engines/megatron_layer.hpp"
#include "engines/megatron_mlp.hpp"

namespace zeroplan {
namespace {

using TensorId = RankBlock::TensorId;
using Parameters = RankBlock::Parameters;

/// Queries of the decoder's tokens, packed keys and values of the encoder's. source:
/// megatron/core/transformer attention.py CrossAttention.
class RankCrossAttention {
public:
    explicit RankCrossAttention(RankBlock& rank)
        : rank_(rank), d_(rank.context().decoder), heads_(rank.context().per_rank(d_.num_attention_heads)) {}

    void declare() {
        BlockBuilder& block = rank_.builder();
        const std::uint64_t width = heads_ * d_.head_dim;
        norm_ = rank_.norm_parameters("pre_cross_attn_layernorm", d_.hidden_size);
        projection_ = block.linear_parameters("cross_attention.linear_proj", width, d_.hidden_size,
                                              d_.attention_output_bias);
        query_ =
            block.linear_parameters("cross_attention.linear_q", d_.hidden_size, width, d_.attention_bias);
        key_value_ = block.linear_parameters("cross_attention.linear_kv", d_.hidden_size, 2 * width,
                                             d_.attention_bias);
    }

    TensorId write(TensorId x) {
        BlockBuilder& block = rank_.builder();
        const std::uint64_t width = heads_ * d_.head_dim;
        context_ = block.add_tensor(
            {.name = "context", .extent = {.per_token = rank_.context().between(d_.hidden_size)}});
        const TensorId normed = rank_.layer_norm("pre_cross_attn_layernorm", x, d_.hidden_size, norm_);
        const TensorId query =
            rank_.column_parallel("cross_attention.linear_q", normed, d_.hidden_size, width, query_);
        const TensorId key_value = rank_.column_parallel("cross_attention.linear_kv", context_,
                                                         d_.hidden_size, 2 * width, key_value_);
        encoders_ = {context_, key_value};
        const auto first = static_cast<TensorId>(block.tensor_count());
        const TensorId out =
            rank_attention_core(rank_, {query, key_value}, {heads_, heads_, d_.head_dim, d_.head_dim});
        for (TensorId t = first; t < block.tensor_count(); ++t)
            if (block.extent_of(t).per_token_pair != 0) crossing_.push_back(t);
        return rank_.row_parallel("cross_attention.linear_proj", rank_.alias("cross_attention.output", out),
                                  width, d_.hidden_size, projection_);
    }

    void size(BlockKind& kind, std::uint64_t length) const {
        kind.context_tensor = context_;
        fix_length(kind, length, encoders_, crossing_);
    }

private:
    RankBlock& rank_;
    const DecoderConfig& d_;
    std::uint64_t heads_;
    Parameters norm_, projection_, query_, key_value_;
    TensorId context_ = 0;
    std::vector<TensorId> encoders_, crossing_;  ///< of the encoder's length, and of both
};

}  // namespace

BlockTemplate megatron_cross_layer(const MegatronContext& c) {
    const std::uint64_t hidden = c.decoder.hidden_size;
    RankBlock rank(c, "decoder layer", {.name = "input", .extent = {.per_token = c.between(hidden)}});
    RankAttention attention(rank);
    RankCrossAttention cross(rank);
    RankMlp mlp(rank, false);
    const Parameters input_norm = rank.norm_parameters("input_layernorm", hidden);
    attention.declare("self_attention.");
    cross.declare();
    const Parameters mlp_norm = rank.norm_parameters("pre_mlp_layernorm", hidden);
    mlp.declare("mlp.");

    TensorId x = rank.dropout_add("self_attention", 0,
                                  attention.write(rank.layer_norm("input_layernorm", 0, hidden, input_norm)));
    x = rank.dropout_add("cross_attention", x, cross.write(x));
    x = rank.dropout_add("mlp", x, mlp.write(rank.layer_norm("pre_mlp_layernorm", x, hidden, mlp_norm)));
    BlockTemplate layer = rank.builder().finish(x, true);
    cross.size(layer.kind, c.sequence_length);
    return layer;
}

}  // namespace zeroplan
