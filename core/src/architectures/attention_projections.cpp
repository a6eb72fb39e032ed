#include "architectures/attention_projections.hpp"

#include <utility>

#include "architectures/transformer_layer.hpp"

namespace zeroplan {

AttentionProjections::AttentionProjections(BlockBuilder& block, const DecoderConfig& config,
                                           const DecoderNames& names, const LoweringOptions& options,
                                           Layer layer)
    : block_(block),
      config_(config),
      names_(names),
      options_(options),
      layer_(layer),
      shape_{config.num_attention_heads, config.num_key_value_heads, config.head_dim},
      norm_(norm_kernel(config, options)) {}

void AttentionProjections::declare() {
    // A module's own parameters come ahead of those of its parts.
    if (config_.attention_sinks) sinks_ = {block_.parameter(names_.sinks, {shape_.heads})};
    for (const Projection projection : names_.projections) {
        const bool is_packed =
            config_.fused_qkv && projection != Projection::output && projection != Projection::head_norms;
        if (!is_packed)
            declare(projection);
        else if (packed_.empty())
            packed_ = linear(names_.packed_qkv, shape_.query_width() + 2 * shape_.key_width(),
                             config_.attention_bias);
    }
}

void AttentionProjections::declare(Projection projection) {
    switch (projection) {
        case Projection::query:
            query_ = linear(names_.query, shape_.query_width(), config_.attention_bias);
            return;
        case Projection::key:
            key_ = linear(names_.key, shape_.key_width(), config_.attention_bias);
            return;
        case Projection::value:
            value_ = linear(names_.value, shape_.key_width(), config_.attention_bias);
            return;
        case Projection::output:
            return declare_output();
        case Projection::head_norms:
            if (!config_.query_key_norm) return;
            query_norm_ = head_norm(names_.query_norm, shape_.heads, query_norm_width());
            key_norm_ = head_norm(names_.key_norm, shape_.kv_heads, key_norm_width());
            return;
    }
}

void AttentionProjections::declare_output() {
    output_ = block_.linear_parameters(names_.attention_output, shape_.query_width(), config_.hidden_size,
                                       config_.attention_output_bias, names_.transposed);
    // T5Attention registers its table of relative positions behind the projections.
    if (layer_.relative_buckets != 0)
        relative_positions_ = {block_.parameter(relative_name(), {layer_.relative_buckets, shape_.heads})};
}

/// One row of weights for all heads, or one each.
AttentionProjections::Parameters AttentionProjections::head_norm(const std::string& module,
                                                                 std::uint64_t heads, std::uint64_t width) {
    if (!config_.head_norm_weight) return {};
    if (config_.head_norm_rows) return {block_.parameter(module + ".weight", {heads, width})};
    return norm_parameters(block_, config_, module, width);
}

AttentionProjections::Parameters AttentionProjections::linear(const std::string& module, std::uint64_t out,
                                                              bool bias) {
    return block_.linear_parameters(module, config_.hidden_size, out, bias, names_.transposed);
}

std::string AttentionProjections::relative_name() const {
    const std::string& query = names_.query;
    return query.substr(0, query.rfind('.') + 1) + "relative_attention_bias.weight";
}

std::uint64_t AttentionProjections::query_norm_width() const {
    return config_.whole_width_head_norms ? shape_.query_width() : shape_.head_dim;
}

std::uint64_t AttentionProjections::key_norm_width() const {
    return config_.whole_width_head_norms ? shape_.key_width() : shape_.head_dim;
}

/// Rows of a small table, a head and pair of tokens each. Made in the first layer's forward, the bias lives
/// until that layer's backward.
void AttentionProjections::write_relative_positions() {
    if (relative_positions_.empty()) return;
    position_bias_ = block_.add_tensor({.name = "position_bias", .extent = {.per_token_pair = shape_.heads}});
    block_.add({.name = "position_bias",
                .kind = OperatorKind::elementwise,
                .inputs = {},
                .outputs = {*position_bias_},
                .saved = {*position_bias_},
                .parameters = relative_positions_,
                .saves_parameters = false});
}

QueryKeyValue AttentionProjections::project(TensorId x) {
    const std::uint64_t hidden = config_.hidden_size, q = shape_.query_width(), kv = shape_.key_width();
    if (config_.fused_qkv) return {{block_.linear(names_.packed_qkv, x, hidden, q + 2 * kv, packed_)}};
    return {{block_.linear(names_.query, x, hidden, q, query_),
             block_.linear(names_.key, x, hidden, kv, key_),
             block_.linear(names_.value, x, hidden, kv, value_)}};
}

void AttentionProjections::norm_heads(QueryKeyValue& qkv) {
    qkv.tensors[0] = block_.norm(names_.query_norm, qkv.tensors[0], query_norm_width(),
                                 shape_.query_width() / query_norm_width(), query_norm_, norm_);
    qkv.tensors[1] = block_.norm(names_.key_norm, qkv.tensors[1], key_norm_width(),
                                 shape_.key_width() / key_norm_width(), key_norm_, norm_);
}

/// clamp, whose backward reads what was clamped.
void AttentionProjections::clip(QueryKeyValue& qkv) {
    for (TensorId& x : qkv.tensors) {
        const std::uint64_t width = block_.width_of(x);
        const TensorId clipped = block_.tensor("attention.clipped", width);
        block_.add({.name = "attention.clip",
                    .kind = OperatorKind::elementwise,
                    .inputs = {x},
                    .outputs = {clipped},
                    .saved = {x},
                    .forward_flops = {.per_token = width},
                    .backward_flops = {.per_token = width}});
        x = clipped;
    }
}

/// Norms of heads and rotary embedding. Llama 4 norms what it has rotated, and only that.
void AttentionProjections::place_heads(QueryKeyValue& qkv) {
    const bool rotates = config_.position_embedding == "rope" && layer_.rotates;
    const bool norms = config_.query_key_norm && !config_.fused_qkv;
    if (norms && !config_.head_norms_after_rope) norm_heads(qkv);
    if (config_.clips_qkv) clip(qkv);
    if (rotates) qkv = rotary_embedding(block_, qkv, shape_, options_.kernels != Kernels::eager);
    if (norms && config_.head_norms_after_rope && rotates) norm_heads(qkv);
    if (names_.tempers_queries && !layer_.rotates)
        qkv.tensors[0] = block_.scaled("attention.query", qkv.tensors[0], shape_.query_width());
}

BlockBuilder::TensorId AttentionProjections::write(TensorId x, ScoreOptions scores) {
    QueryKeyValue qkv = project(x);
    place_heads(qkv);
    if (options_.torch_modules && options_.attention == AttentionKernel::sdpa)
        qkv = repeat_key_value(block_, qkv, shape_);
    scores.bias = position_bias_;
    scores.sinks = sinks_;
    const TensorId out = attention_core(block_, qkv, shape_, options_, scores);
    return block_.linear(names_.attention_output, out, shape_.query_width(), config_.hidden_size, output_);
}

}  // namespace zeroplan
