#include "architectures/vision.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "architectures/decoder.hpp"
#include "architectures/fixed_length.hpp"
#include "architectures/loss.hpp"
#include "architectures/transformer_layer.hpp"
#include "zeroplan/units.hpp"

namespace zeroplan {
namespace {

using TensorId = BlockBuilder::TensorId;
using Parameters = std::vector<BlockBuilder::ParameterId>;

/// A convolution whose stride is its size: one product a patch; then class token and positions.
class PatchEmbedding {
public:
    PatchEmbedding(const VisionConfig& config, const LoweringOptions& options)
        : config_(config),
          hidden_(config.layers.hidden_size),
          pixels_(config.pixels()),
          block_("patch embedding",
                 {.name = "pixels",
                  .extent = {.per_sequence = config.channels * config.image_size * config.image_size *
                                             std::max<std::uint64_t>(config.frames, 1)},
                  .needs_gradient = false},
                 kernel_style(options)),
          norm_(norm_kernel(config.layers, options)) {}

    BlockTemplate build() {
        if (config_.tokens_first) declare_tokens();
        std::vector<std::uint64_t> shape{hidden_, config_.channels, config_.patch_size, config_.patch_size};
        if (config_.frames != 0) shape.insert(shape.begin() + 2, config_.frames);
        const auto weight = block_.parameter(config_.patch_projection + ".weight", std::move(shape));
        Parameters projection{weight};
        if (config_.patch_bias)
            projection.push_back(block_.parameter(config_.patch_projection + ".bias", {hidden_}));
        if (!config_.tokens_first) declare_tokens();
        TensorId x = project(std::move(projection));
        if (!tokens_.empty()) x = with_tokens(x);
        if (!config_.first_norm.empty()) {
            const Parameters norm = norm_parameters(block_, config_.layers, config_.first_norm, hidden_);
            x = block_.norm("first_norm", x, hidden_, 1, norm, norm_);
        }
        BlockTemplate finished = block_.finish(x);
        fix_length(finished.kind, config_.tokens(), {0});
        return finished;
    }

private:
    void declare_tokens() {
        if (!config_.class_token.empty())
            tokens_.push_back(block_.parameter(
                config_.class_token,
                config_.flat_positions ? std::vector{hidden_} : std::vector<std::uint64_t>{1, 1, hidden_}));
        if (!config_.mask_token.empty()) block_.parameter(config_.mask_token, {1, hidden_});
        if (config_.positions.empty()) return;
        const std::uint64_t tokens = config_.tokens();
        tokens_.push_back(block_.parameter(
            config_.positions, config_.flat_positions ? std::vector{tokens, hidden_}
                                                      : std::vector<std::uint64_t>{1, tokens, hidden_}));
    }

    TensorId project(Parameters projection) {
        const TensorId out = block_.tensor("patches", hidden_);
        const std::uint64_t products = checked_product(pixels_, hidden_, "linear operations");
        block_.add({.name = "patch_embedding",
                    .kind = OperatorKind::linear,
                    .inputs = {0},
                    .outputs = {out},
                    .saved = {0},
                    .parameters = std::move(projection),
                    .forward_flops = {.per_sequence = 2 * products * config_.patches()},
                    .backward_flops = {.per_sequence = 2 * products * config_.patches()},
                    .in_features = pixels_,
                    .out_features = hidden_});
        return out;
    }

    TensorId with_tokens(TensorId x) {
        const TensorId out = block_.tensor("embeddings", hidden_, block_.style().residual());
        block_.add({.name = "embeddings",
                    .kind = OperatorKind::elementwise,
                    .inputs = {x},
                    .outputs = {out},
                    .parameters = tokens_,
                    .forward_flops = {.per_token = hidden_},
                    .backward_flops = {.per_token = hidden_},
                    .saves_parameters = false});
        return out;
    }

    const VisionConfig& config_;
    std::uint64_t hidden_, pixels_;
    BlockBuilder block_;
    NormKernel norm_;
    Parameters tokens_;
};

BlockTemplate last_norm(const VisionConfig& config, const LoweringOptions& options) {
    const std::uint64_t hidden = config.layers.hidden_size;
    BlockBuilder block("vision end", hidden_tensor(hidden, kernel_style(options)), kernel_style(options));
    const Parameters norm = norm_parameters(block, config.layers, config.last_norm, hidden);
    const TensorId x = block.norm("last_norm", 0, hidden, 1, norm, norm_kernel(config.layers, options));
    BlockTemplate finished = block.finish(x);
    fix_length(finished.kind, config.tokens());
    return finished;
}

/// The class token, and for twice as many features the mean of the patches beside it.
BlockTemplate classifier(const VisionConfig& config, std::uint64_t features, std::uint64_t labels,
                         const LoweringOptions& options) {
    const std::uint64_t hidden = config.layers.hidden_size, width = features * hidden;
    BlockBuilder block("head", hidden_tensor(hidden, kernel_style(options)), kernel_style(options));
    const Parameters linear = block.linear_parameters("classifier", width, labels, true);
    const TensorId pooled = block.tensor("pooled", width, block.style().residual());
    block.add({.name = "pool", .kind = OperatorKind::elementwise, .inputs = {0}, .outputs = {pooled}});
    const TensorId target = block.add_tensor(label_tensor());
    LoweringOptions unfused = options;
    unfused.loss = LossKernel::eager;
    const TensorId loss = output_layer_with_loss(block, pooled, width, labels, linear, target, unfused);
    BlockTemplate head = block.finish_with_loss(loss, target);
    fix_length(head.kind, 1, {0});
    const TensorSpec input = head.kind.tensors[0];
    head.kind.tensors[0].extent = {.per_sequence = input.extent.per_token * config.tokens()};
    return head;
}

/// LlavaMultiModalProjector
TensorId two_linears(BlockBuilder& block, std::uint64_t hidden, std::uint64_t width) {
    const Parameters first = block.linear_parameters("linear_1", hidden, width, true),
                     second = block.linear_parameters("linear_2", width, width, true);
    const TensorId x = block.activation("act", block.linear("linear_1", 0, hidden, width, first), width,
                                        ActivationFunction::gelu);
    return block.linear("linear_2", x, width, width, second);
}

/// Gemma3MultiModalProjector
TensorId pooled_linear(BlockBuilder& block, std::uint64_t hidden, std::uint64_t width,
                       const LoweringOptions& options) {
    const auto weight = block.parameter("mm_input_projection_weight", {hidden, width});
    const auto norm = block.parameter("mm_soft_emb_norm.weight", {hidden});
    const TensorId pooled = block.tensor("avg_pool", hidden, block.style().residual());
    block.add({.name = "avg_pool", .kind = OperatorKind::elementwise, .inputs = {0}, .outputs = {pooled}});
    const TensorId x = block.norm("mm_soft_emb_norm", pooled, hidden, 1, {norm},
                                  {true, options.kernels != Kernels::eager, options.upcasts()});
    return block.linear("mm_input_projection", x, hidden, width, {weight});
}

/// Qwen2VL's PatchMerger, of as many patches as make one token.
TensorId merger(BlockBuilder& block, const ImageTextConfig& config, const LoweringOptions& options) {
    const std::uint64_t hidden = config.vision.layers.hidden_size, width = config.text.hidden_size;
    const std::uint64_t merged = config.vision.patches() / config.image_tokens, wide = merged * hidden;
    const Parameters norm = norm_parameters(block, config.vision.layers, "ln_q", hidden),
                     first = block.linear_parameters("mlp.0", wide, wide, true),
                     second = block.linear_parameters("mlp.2", wide, width, true);
    TensorId x = block.norm("ln_q", 0, hidden, merged, norm, norm_kernel(config.vision.layers, options));
    x = block.activation("mlp.1", block.linear("mlp.0", x, wide, wide, first), wide,
                         ActivationFunction::gelu);
    return block.linear("mlp.2", x, wide, width, second);
}

BlockTemplate projector(const ImageTextConfig& config, const LoweringOptions& options) {
    const std::uint64_t hidden = config.vision.layers.hidden_size, width = config.text.hidden_size;
    BlockBuilder block("projector", hidden_tensor(hidden, kernel_style(options)), kernel_style(options));
    const TensorId x = config.projector == Projector::two_linears ? two_linears(block, hidden, width)
                       : config.projector == Projector::pooled_linear
                           ? pooled_linear(block, hidden, width, options)
                           : merger(block, config, options);
    BlockTemplate finished = block.finish(x);
    fix_length(finished.kind, config.image_tokens, {0});
    finished.kind.tensors[0].extent = {.per_sequence = hidden * config.vision.tokens()};
    return finished;
}

}  // namespace

void append_vision(ModelSpec& model, const VisionConfig& config, const std::string& prefix,
                   const LoweringOptions& options) {
    append_block(model, PatchEmbedding(config, options).build(), prefix + "embeddings", prefix);
    const BlockTemplate layer =
        transformer_layer(config.layers, config.names, options, false, {.length = config.tokens()});
    for (std::uint64_t i = 0; i < config.layers.num_hidden_layers; ++i) {
        const std::string name = fmt::format("{}{}.{}", prefix, config.names.layers, i);
        append_block(model, layer, name, name + ".");
    }
    if (!config.last_norm.empty())
        append_block(model, last_norm(config, options), prefix + config.last_norm, prefix);
}

ModelSpec build_image_classifier(const VisionConfig& config, std::uint64_t features, std::uint64_t labels,
                                 const LoweringOptions& options) {
    ModelSpec model{.name = config.layers.name,
                    .architecture = config.layers.architecture,
                    .batch = BatchKind::tokens,  // patches; sequence_length says how many
                    .hidden_size = config.layers.hidden_size,
                    .layers = config.layers.num_hidden_layers,
                    .heads = config.layers.num_attention_heads,
                    .kv_heads = config.layers.num_attention_heads,
                    .max_sequence_length = config.tokens()};
    append_vision(model, config, config.names.prefix, options);
    append_block(model, classifier(config, features, labels, options), "head", "");
    return model;
}

ModelSpec build_image_text(const ImageTextConfig& config, const LoweringOptions& options) {
    ModelSpec model = token_model(config.text);
    model.layers += config.vision.layers.num_hidden_layers;
    append_vision(model, config.vision, config.vision_prefix, options);
    const std::string& prefix = config.projector_prefix;
    append_block(model, projector(config, options), prefix.substr(0, prefix.size() - 1), prefix);
    DecoderNames names = decoder_names(config.text.family);
    names.head = config.head_prefix + names.head;
    DecoderConfig text = config.text;
    text.parameter_prefix = config.text_prefix;
    append_decoder(model, text, names, options, config.image_tokens);
    return model;
}

}  // namespace zeroplan
