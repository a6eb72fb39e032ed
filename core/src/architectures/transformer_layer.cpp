#include "architectures/transformer_layer.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "architectures/attention.hpp"
#include "architectures/experts.hpp"
#include "architectures/fixed_length.hpp"
#include "architectures/latent_attention.hpp"
#include "architectures/written_activations.hpp"

namespace zeroplan {
namespace {

using TensorId = BlockBuilder::TensorId;
using Parameters = std::vector<BlockBuilder::ParameterId>;

struct Mlp {
    ActivationFunction function;
    bool gated;
};

Mlp mlp_of(const std::string& word) {
    constexpr std::array<std::pair<std::string_view, Mlp>, 5> known{
        {{"swiglu", {ActivationFunction::silu, true}},
         {"geglu", {ActivationFunction::gelu, true}},
         {"gelu", {ActivationFunction::gelu, false}},
         {"relu", {ActivationFunction::relu, false}},
         {"squared_relu", {ActivationFunction::squared_relu, false}}}};
    for (const auto& [name, mlp] : known)
        if (name == word) return mlp;
    throw Error(ErrorCode::invalid_input, fmt::format("unknown mlp '{}'", word),
                "one of: swiglu, geglu, gelu, relu, squared_relu", {"", "/model/mlp"});
}

class LayerBuilder {
public:
    LayerBuilder(const DecoderConfig& config, const DecoderNames& names, const LoweringOptions& options,
                 bool has_experts, const TransformerLayerExtras& extras)
        : config_(config),
          names_(names),
          options_(options),
          extras_(extras),
          hidden_(config.hidden_size),
          shape_{config.num_attention_heads, config.num_key_value_heads, config.head_dim},
          fused_(options.kernels != Kernels::eager),
          norm_(norm_kernel(config, options)),
          mlp_kind_(mlp_of(config.mlp)),
          block_("layer", hidden_tensor(hidden_, kernel_style(options)), kernel_style(options)) {
        if (config.latent_attention)
            latent_.emplace(block_, *config.latent_attention, hidden_, config.num_attention_heads, norm_);
        if (has_experts) experts_.emplace(block_, *config.experts, hidden_, mlp_kind_.function, fused_);
    }

    BlockTemplate build() {
        for (const LayerPart part : names_.parts) declare(part);
        const TensorId out = config_.branch_order == BranchOrder::sequential ? sequential() : parallel();
        BlockTemplate layer = block_.finish(out, true);
        layer.kind.context_tensor = context_;
        if (extras_.length != 0) fix_length(layer.kind, extras_.length, from_context_, crossing_);
        return layer;
    }

private:
    bool norms_before() const {
        return config_.norm_placement == NormPlacement::before ||
               config_.norm_placement == NormPlacement::around;
    }

    void declare(LayerPart part) {
        const auto norm = [&](const std::string& module) {
            return norm_parameters(block_, config_, module, hidden_);
        };
        switch (part) {
            case LayerPart::attention_norm:
                attention_norm_ = norm(names_.attention_norm);
                return;
            case LayerPart::attention:
                if (latent_) return latent_->declare(config_.attention_bias);
                return declare_attention();
            case LayerPart::attention_output_norm:
                attention_output_norm_ = norm(names_.attention_output_norm);
                return;
            case LayerPart::attention_scale:
                attention_scale_ = {block_.parameter(names_.attention_scale, {hidden_})};
                return;
            case LayerPart::cross_norm:
                cross_norm_ = norm(names_.cross_norm);
                return;
            case LayerPart::cross_attention:
                return declare_cross_attention();
            case LayerPart::mlp_norm:
                if (config_.branch_order != BranchOrder::parallel_one_norm) mlp_norm_ = norm(names_.mlp_norm);
                return;
            case LayerPart::mlp:
                if (experts_) return experts_->declare();
                return declare_mlp();
            case LayerPart::mlp_output_norm:
                mlp_output_norm_ = norm(names_.mlp_output_norm);
                return;
            case LayerPart::mlp_scale:
                mlp_scale_ = {block_.parameter(names_.mlp_scale, {hidden_})};
                return;
        }
    }

    Parameters linear(const std::string& module, std::uint64_t in, std::uint64_t out, bool bias) {
        return block_.linear_parameters(module, in, out, bias, names_.transposed);
    }

    void declare_attention() {
        const std::uint64_t q = shape_.query_width(), kv = shape_.key_width();
        for (const Projection projection : names_.projections) {
            const bool is_output = projection == Projection::output;
            if (config_.fused_qkv && !is_output && projection != Projection::head_norms) {
                if (packed_.empty())
                    packed_ = linear(names_.packed_qkv, hidden_, q + 2 * kv, config_.attention_bias);
                continue;
            }
            switch (projection) {
                case Projection::query:
                    query_ = linear(names_.query, hidden_, q, config_.attention_bias);
                    break;
                case Projection::key:
                    key_ = linear(names_.key, hidden_, kv, config_.attention_bias);
                    break;
                case Projection::value:
                    value_ = linear(names_.value, hidden_, kv, config_.attention_bias);
                    break;
                case Projection::output:
                    output_ = linear(names_.attention_output, q, hidden_, config_.attention_output_bias);
                    // T5Attention registers its table of relative positions behind the projections.
                    if (extras_.relative_buckets != 0)
                        relative_positions_ = {
                            block_.parameter(relative_name(), {extras_.relative_buckets, shape_.heads})};
                    break;
                case Projection::head_norms:
                    if (config_.query_key_norm) declare_head_norms();
                    break;
            }
        }
    }

    void declare_cross_attention() {
        const std::uint64_t q = shape_.query_width(), kv = shape_.key_width();
        cross_query_ = linear(names_.cross_query, hidden_, q, config_.attention_bias);
        cross_key_ = linear(names_.cross_key, extras_.context_width, kv, config_.attention_bias);
        cross_value_ = linear(names_.cross_value, extras_.context_width, kv, config_.attention_bias);
        cross_output_ = linear(names_.cross_output, q, hidden_, config_.attention_output_bias);
    }

    void declare_head_norms() {
        query_norm_ = norm_parameters(block_, config_, names_.query_norm, query_norm_width());
        key_norm_ = norm_parameters(block_, config_, names_.key_norm, key_norm_width());
    }
    std::string relative_name() const {
        const std::string& query = names_.query;
        return query.substr(0, query.rfind('.') + 1) + "relative_attention_bias.weight";
    }
    std::uint64_t query_norm_width() const {
        return config_.whole_width_head_norms ? shape_.query_width() : shape_.head_dim;
    }
    std::uint64_t key_norm_width() const {
        return config_.whole_width_head_norms ? shape_.key_width() : shape_.head_dim;
    }

    void declare_mlp() {
        const std::uint64_t f = config_.intermediate_size;
        if (config_.packed_gate_up) {
            up_ = linear(names_.packed_gate_up, hidden_, 2 * f, config_.mlp_bias);
        } else {
            if (mlp_kind_.gated) gate_ = linear(names_.gate, hidden_, f, config_.mlp_bias);
            const bool renamed = mlp_kind_.gated && !names_.gated_up.empty();
            up_ = linear(renamed ? names_.gated_up : names_.up, hidden_, f, config_.mlp_bias);
        }
        down_ = linear(names_.down, f, hidden_, config_.mlp_bias);
    }

    TensorId normed(const std::string& name, TensorId x, const Parameters& parameters) {
        return block_.norm(name, x, hidden_, 1, parameters, norm_);
    }

    TensorId sequential() {
        if (!relative_positions_.empty()) write_relative_positions();
        const bool before = norms_before(), after = config_.norm_placement == NormPlacement::after;
        const TensorId first = before ? normed(names_.attention_norm, 0, attention_norm_) : 0;
        TensorId x = block_.residual_add("attention.residual", config_.residual_from_norm ? first : 0,
                                         attention_branch(first), hidden_);
        if (after) x = normed(names_.attention_norm, x, attention_norm_);
        if (extras_.context_width != 0)
            x = block_.residual_add("cross_attention.residual", x,
                                    cross_branch(normed(names_.cross_norm, x, cross_norm_)), hidden_);
        const TensorId second = before ? normed(names_.mlp_norm, x, mlp_norm_) : x;
        x = block_.residual_add("mlp.residual", config_.residual_from_norm ? second : x, mlp_branch(second),
                                hidden_);
        return after ? normed(names_.mlp_norm, x, mlp_norm_) : x;
    }

    TensorId parallel() {
        const TensorId first = normed(names_.attention_norm, 0, attention_norm_);
        const TensorId second = config_.branch_order == BranchOrder::parallel_one_norm
                                    ? first
                                    : normed(names_.mlp_norm, 0, mlp_norm_);
        const TensorId attention = attention_branch(first);
        const TensorId both = block_.residual_add("branches.add", attention, mlp_branch(second), hidden_);
        return block_.residual_add("residual", 0, both, hidden_);
    }

    TensorId attention_branch(TensorId x) {
        TensorId branch = latent_ ? latent_attention(x)
                                  : block_.linear(names_.attention_output, attention(x), shape_.query_width(),
                                                  hidden_, output_);
        if (!attention_output_norm_.empty())
            branch = normed(names_.attention_output_norm, branch, attention_output_norm_);
        if (!attention_scale_.empty()) branch = scaled(names_.attention_scale, branch, attention_scale_);
        if (options_.dropout)
            branch = block_.dropout("attention.output_dropout", branch, {.per_token = hidden_});
        return branch;
    }

    /// Queries of the layer's own tokens, keys and values of the encoder's.
    TensorId cross_branch(TensorId x) {
        const std::uint64_t q = shape_.query_width(), kv = shape_.key_width();
        context_ = block_.add_tensor({.name = "context",
                                      .extent = {.per_token = extras_.context_width},
                                      .dtype = block_.style().residual()});
        from_context_.push_back(*context_);
        const TensorId query = block_.linear(names_.cross_query, x, hidden_, q, cross_query_);
        const auto projected = [&](const std::string& name, const Parameters& parameters) {
            const auto first = static_cast<TensorId>(block_.tensor_count());
            const TensorId out = block_.linear(name, *context_, extras_.context_width, kv, parameters);
            for (TensorId t = first; t < block_.tensor_count(); ++t) from_context_.push_back(t);
            return out;
        };
        const TensorId key = projected(names_.cross_key, cross_key_);
        const QueryKeyValue qkv{{query, key, projected(names_.cross_value, cross_value_)}};
        const auto first = static_cast<TensorId>(block_.tensor_count());
        const TensorId out = attention_core(block_, qkv, shape_, options_, softmax());
        for (TensorId t = first; t < block_.tensor_count(); ++t)
            if (block_.extent_of(t).per_token_pair != 0) crossing_.push_back(t);
        TensorId branch = block_.linear(names_.cross_output, out, q, hidden_, cross_output_);
        if (options_.dropout)
            branch = block_.dropout("cross_attention.dropout", branch, {.per_token = hidden_});
        return branch;
    }

    /// The bias that all layers of the stack add to their scores: rows of a small table, a head and pair of
    /// tokens each. Made in the first layer's forward, it lives until that layer's backward.
    void write_relative_positions() {
        const TensorId bias =
            block_.add_tensor({.name = "position_bias", .extent = {.per_token_pair = shape_.heads}});
        block_.add({.name = "position_bias",
                    .kind = OperatorKind::elementwise,
                    .inputs = {},
                    .outputs = {bias},
                    .saved = {bias},
                    .parameters = relative_positions_,
                    .saves_parameters = false});
        position_bias_ = bias;
    }

    TensorId mlp_branch(TensorId x) {
        TensorId branch = experts_
                              ? experts_->write(x)
                              : block_.linear(names_.down, mlp(x), config_.intermediate_size, hidden_, down_);
        if (!mlp_output_norm_.empty()) branch = normed(names_.mlp_output_norm, branch, mlp_output_norm_);
        if (!mlp_scale_.empty()) branch = scaled(names_.mlp_scale, branch, mlp_scale_);
        if (options_.dropout) branch = block_.dropout("mlp.dropout", branch, {.per_token = hidden_});
        return branch;
    }

    TensorId scaled(const std::string& name, TensorId x, const Parameters& scale) {
        const TensorId out = block_.tensor(name, hidden_, block_.style().residual());
        block_.add({.name = name,
                    .kind = OperatorKind::elementwise,
                    .inputs = {x},
                    .outputs = {out},
                    .saved = {x},
                    .parameters = scale,
                    .forward_flops = {.per_token = hidden_},
                    .backward_flops = {.per_token = 2 * hidden_},
                    .backward_workspace = {.per_token = hidden_}});  // gradient · x, before its sum
        return out;
    }

    TensorId latent_attention(TensorId x) {
        const QueryKeyValue qkv = latent_->write(x);
        const TensorId out = attention_core(block_, qkv, latent_->shape(), options_, softmax());
        return block_.linear(names_.attention_output, out, latent_->shape().output_width(), hidden_,
                             latent_->output());
    }

    ScoreOptions softmax() const {
        return {.fp32_softmax = names_.fp32_softmax, .caps_scores = config_.caps_scores};
    }

    TensorId attention(TensorId x) {
        const std::uint64_t q = shape_.query_width(), kv = shape_.key_width();
        QueryKeyValue qkv;
        if (config_.fused_qkv) {
            qkv.tensors = {block_.linear(names_.packed_qkv, x, hidden_, q + 2 * kv, packed_)};
        } else {
            qkv.tensors = {block_.linear(names_.query, x, hidden_, q, query_),
                           block_.linear(names_.key, x, hidden_, kv, key_),
                           block_.linear(names_.value, x, hidden_, kv, value_)};
        }
        if (config_.query_key_norm && !config_.fused_qkv) {
            qkv.tensors[0] = block_.norm(names_.query_norm, qkv.tensors[0], query_norm_width(),
                                         q / query_norm_width(), query_norm_, norm_);
            qkv.tensors[1] = block_.norm(names_.key_norm, qkv.tensors[1], key_norm_width(),
                                         kv / key_norm_width(), key_norm_, norm_);
        }
        if (config_.position_embedding == "rope") qkv = rotary_embedding(block_, qkv, shape_, fused_);
        if (options_.torch_modules && options_.attention == AttentionKernel::sdpa)
            qkv = repeat_key_value(block_, qkv, shape_);
        ScoreOptions scores = softmax();
        scores.bias = position_bias_;
        return attention_core(block_, qkv, shape_, options_, scores);
    }

    TensorId mlp(TensorId x) {
        const TensorId inner = mlp_inside(x);
        if (!options_.dropout || !names_.drops_inside_mlp) return inner;
        return block_.dropout("mlp.inner_dropout", inner, {.per_token = config_.intermediate_size});
    }

    TensorId mlp_inside(TensorId x) {
        const std::uint64_t f = config_.intermediate_size;
        if (config_.packed_gate_up)
            return packed_gated(block_.linear(names_.packed_gate_up, x, hidden_, 2 * f, up_));
        const bool writes = writes_activation();
        if (mlp_kind_.gated) {
            const TensorId gate = block_.linear(names_.gate, x, hidden_, f, gate_);
            const TensorId up = block_.linear(names_.up, x, hidden_, f, up_);
            if (writes)
                return block_.multiply(
                    "mlp.act", written_activation(block_, "mlp.act.gate", gate, f, config_.activation), up,
                    f);
            return block_.gated_activation("mlp.act", gate, up, f, mlp_kind_.function, fused_);
        }
        const TensorId up = block_.linear(names_.up, x, hidden_, f, up_);
        if (writes) return written_activation(block_, "mlp.act", up, f, config_.activation);
        return block_.activation("mlp.act", up, f, mlp_kind_.function);
    }

    bool writes_activation() const {
        return block_.style().torch_modules && !fused_ && mlp_kind_.function == ActivationFunction::gelu &&
               is_written_activation(config_.activation);
    }

    /// Gate and up are halves of one tensor; unfused, act(gate) is kept beside it.
    TensorId packed_gated(TensorId packed) {
        const std::uint64_t f = config_.intermediate_size;
        const TensorId out = block_.tensor("mlp.act", f);
        Operator op{.name = "mlp.act",
                    .kind = OperatorKind::gated_activation,
                    .inputs = {packed},
                    .outputs = {out},
                    .saved = {packed},
                    .forward_flops = {.per_token = 6 * f},
                    .backward_flops = {.per_token = 12 * f},
                    .function = mlp_kind_.function};
        if (!fused_) {
            op.outputs.push_back(block_.add_tensor(
                {.name = "mlp.act.gate", .extent = {.per_token = f}, .needs_gradient = false}));
            op.saved.push_back(op.outputs.back());
        }
        block_.add(std::move(op));
        return out;
    }

    const DecoderConfig& config_;
    const DecoderNames& names_;
    const LoweringOptions& options_;
    TransformerLayerExtras extras_;
    std::uint64_t hidden_;
    AttentionShape shape_;
    bool fused_;
    NormKernel norm_;
    Mlp mlp_kind_;
    BlockBuilder block_;
    std::optional<LatentAttention> latent_;
    std::optional<ExpertLayer> experts_;
    std::optional<TensorId> context_, position_bias_;
    std::vector<TensorId> from_context_, crossing_;  ///< tensors of the encoder's length, and of both
    Parameters cross_norm_, cross_query_, cross_key_, cross_value_, cross_output_, relative_positions_;
    Parameters attention_norm_, mlp_norm_, attention_output_norm_, mlp_output_norm_, attention_scale_,
        mlp_scale_, query_, key_, value_, packed_, output_, query_norm_, key_norm_, gate_, up_, down_;
};

}  // namespace

BlockTemplate transformer_layer(const DecoderConfig& config, const DecoderNames& names,
                                const LoweringOptions& options, bool has_experts,
                                const TransformerLayerExtras& extras) {
    return LayerBuilder(config, names, options, has_experts, extras).build();
}

std::vector<BlockBuilder::ParameterId> norm_parameters(BlockBuilder& block, const DecoderConfig& config,
                                                       const std::string& module, std::uint64_t width) {
    Parameters ids{block.parameter(module + ".weight", {width})};
    if (config.normalization != "rmsnorm" && config.norm_bias)
        ids.push_back(block.parameter(module + ".bias", {width}));
    return ids;
}

NormKernel norm_kernel(const DecoderConfig& config, const LoweringOptions& options) {
    return {config.normalization == "rmsnorm", options.kernels != Kernels::eager, options.upcasts()};
}

}  // namespace zeroplan
