#include "architectures/transformer_layer.hpp"

#include <optional>

#include "architectures/attention.hpp"
#include "architectures/attention_projections.hpp"
#include "architectures/cross_attention.hpp"
#include "architectures/experts.hpp"
#include "architectures/fixed_length.hpp"
#include "architectures/latent_attention.hpp"
#include "architectures/mlp.hpp"

namespace zeroplan {
namespace {

using TensorId = BlockBuilder::TensorId;
using Parameters = std::vector<BlockBuilder::ParameterId>;

/// Puts a layer's branches, norms and residuals together.
class LayerBuilder {
public:
    LayerBuilder(const DecoderConfig& config, const DecoderNames& names, const LoweringOptions& options,
                 bool has_experts, const TransformerLayerExtras& extras)
        : config_(config),
          names_(names),
          options_(options),
          length_(extras.length),
          hidden_(config.hidden_size),
          norm_(norm_kernel(config, options)),
          block_("layer", hidden_tensor(hidden_, kernel_style(options)), kernel_style(options)),
          attention_(block_, config, names, options, {extras.relative_buckets, extras.rotates}),
          mlp_(block_, config, names, options) {
        if (config.latent_attention)
            latent_.emplace(block_, *config.latent_attention, hidden_, config.num_attention_heads, norm_);
        if (extras.context_width != 0) cross_.emplace(block_, config, names, options, extras.context_width);
        if (has_experts)
            experts_.emplace(block_, *config.experts, names, hidden_, mlp_kind(config.mlp).function,
                             options.kernels != Kernels::eager);
    }

    BlockTemplate build() {
        for (const LayerPart part : names_.parts) declare(part);
        const TensorId out = config_.branch_order == BranchOrder::sequential ? sequential() : parallel();
        BlockTemplate layer = block_.finish(out, true);
        if (cross_) layer.kind.context_tensor = cross_->context();
        if (length_ != 0) fix(layer.kind);
        return layer;
    }

private:
    bool norms_before() const {
        return config_.norm_placement == NormPlacement::before ||
               config_.norm_placement == NormPlacement::around;
    }

    void fix(BlockKind& kind) const {
        if (cross_)
            fix_length(kind, length_, cross_->from_context(), cross_->crossing());
        else
            fix_length(kind, length_);
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
                return attention_.declare();
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
                return cross_->declare();
            case LayerPart::mlp_norm:
                if (config_.branch_order != BranchOrder::parallel_one_norm) mlp_norm_ = norm(names_.mlp_norm);
                return;
            case LayerPart::mlp:
                if (experts_) return experts_->declare();
                return mlp_.declare();
            case LayerPart::mlp_output_norm:
                mlp_output_norm_ = norm(names_.mlp_output_norm);
                return;
            case LayerPart::mlp_scale:
                mlp_scale_ = {block_.parameter(names_.mlp_scale, {hidden_})};
                return;
        }
    }

    TensorId normed(const std::string& name, TensorId x, const Parameters& parameters) {
        return block_.norm(name, x, hidden_, 1, parameters, norm_);
    }

    TensorId sequential() {
        attention_.write_relative_positions();
        const bool before = norms_before(), after = config_.norm_placement == NormPlacement::after;
        const TensorId first = before ? normed(names_.attention_norm, 0, attention_norm_) : 0;
        TensorId x = block_.residual_add("attention.residual", config_.residual_from_norm ? first : 0,
                                         attention_branch(first), hidden_);
        if (after) x = normed(names_.attention_norm, x, attention_norm_);
        if (cross_)
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
        TensorId branch = latent_ ? latent_attention(x) : attention_.write(x, softmax());
        if (!attention_output_norm_.empty())
            branch = normed(names_.attention_output_norm, branch, attention_output_norm_);
        if (!attention_scale_.empty()) branch = scaled(names_.attention_scale, branch, attention_scale_);
        return dropped("attention.output_dropout", branch);
    }

    TensorId cross_branch(TensorId x) {
        return dropped("cross_attention.dropout", cross_->write(x, softmax()));
    }

    TensorId mlp_branch(TensorId x) {
        TensorId branch = experts_ ? experts_->write(x) : mlp_.write(x);
        if (!mlp_output_norm_.empty()) branch = normed(names_.mlp_output_norm, branch, mlp_output_norm_);
        if (!mlp_scale_.empty()) branch = scaled(names_.mlp_scale, branch, mlp_scale_);
        return dropped("mlp.dropout", branch);
    }

    TensorId dropped(const std::string& name, TensorId x) {
        return options_.dropout ? block_.dropout(name, x, {.per_token = hidden_}) : x;
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

    const DecoderConfig& config_;
    const DecoderNames& names_;
    const LoweringOptions& options_;
    std::uint64_t length_, hidden_;
    NormKernel norm_;
    BlockBuilder block_;
    AttentionProjections attention_;
    MlpLayer mlp_;
    std::optional<LatentAttention> latent_;
    std::optional<CrossAttention> cross_;
    std::optional<ExpertLayer> experts_;
    Parameters cross_norm_, attention_norm_, mlp_norm_, attention_output_norm_, mlp_output_norm_,
        attention_scale_, mlp_scale_;
};

}  // namespace

BlockTemplate transformer_layer(const DecoderConfig& config, const DecoderNames& names,
                                const LoweringOptions& options, bool has_experts,
                                const TransformerLayerExtras& extras) {
    return LayerBuilder(config, names, options, has_experts, extras).build();
}

std::vector<BlockBuilder::ParameterId> norm_parameters(BlockBuilder& block, const DecoderConfig& config,
                                                       const std::string& module, std::uint64_t width) {
    if (!config.norm_weight) return {};
    Parameters ids{block.parameter(module + ".weight", {width})};
    if (config.normalization != "rmsnorm" && config.norm_bias)
        ids.push_back(block.parameter(module + ".bias", {width}));
    return ids;
}

NormKernel norm_kernel(const DecoderConfig& config, const LoweringOptions& options) {
    return {config.normalization == "rmsnorm", options.kernels != Kernels::eager, options.upcasts(),
            !config.norm_weight};
}

}  // namespace zeroplan
