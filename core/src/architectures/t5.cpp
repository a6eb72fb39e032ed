#include <fmt/format.h>

#include "architectures/encoder.hpp"
#include "architectures/fixed_length.hpp"
#include "architectures/loss.hpp"
#include "architectures/transformer_layer.hpp"

namespace zeroplan {
namespace {

using TensorId = BlockBuilder::TensorId;
using Parameters = std::vector<BlockBuilder::ParameterId>;

DecoderNames stack_names(const char* prefix, bool decoder) {
    const std::string mlp = decoder ? "layer.2." : "layer.1.";
    DecoderNames names{
        .prefix = prefix,
        .layers = "block",
        .query = "layer.0.SelfAttention.q",
        .key = "layer.0.SelfAttention.k",
        .value = "layer.0.SelfAttention.v",
        .attention_output = "layer.0.SelfAttention.o",
        .gate = mlp + "DenseReluDense.wi_0",
        .up = mlp + "DenseReluDense.wi",
        .down = mlp + "DenseReluDense.wo",
        .attention_norm = "layer.0.layer_norm",
        .mlp_norm = mlp + "layer_norm",
        .parts = {LayerPart::attention, LayerPart::attention_norm, LayerPart::mlp, LayerPart::mlp_norm},
        .fp32_softmax = true,
        .drops_inside_mlp = true};
    names.gated_up = mlp + "DenseReluDense.wi_1";
    if (!decoder) return names;
    names.cross_query = "layer.1.EncDecAttention.q";
    names.cross_key = "layer.1.EncDecAttention.k";
    names.cross_value = "layer.1.EncDecAttention.v";
    names.cross_output = "layer.1.EncDecAttention.o";
    names.cross_norm = "layer.1.layer_norm";
    names.parts = {
        LayerPart::attention, LayerPart::attention_norm, LayerPart::cross_attention, LayerPart::cross_norm,
        LayerPart::mlp,       LayerPart::mlp_norm};
    return names;
}

class T5Builder {
public:
    T5Builder(const EncoderDecoderConfig& config, const LoweringOptions& options)
        : config_(config),
          layers_(config.layers),
          options_(options),
          hidden_(config.layers.hidden_size),
          norm_(norm_kernel(config.layers, options)) {}

    ModelSpec build() {
        model_ = token_model(layers_);
        model_.layers += config_.num_decoder_layers;
        model_.encoder_decoder = config_;
        model_.encoder_decoder->layers.dropout = options_.dropout;
        append_embedding("encoder.", false);
        append_stack(stack_names("encoder.", false), layers_.num_hidden_layers, false);
        append_encoder_end();
        append_embedding("decoder.", true);
        append_stack(stack_names("decoder.", true), config_.num_decoder_layers, true);
        append_head();
        return std::move(model_);
    }

private:
    /// A decoder block over its own number of tokens, where that differs.
    void fix(BlockKind& kind, bool decoder) const {
        if (decoder && config_.decoder_sequence_length != 0)
            fix_length(kind, config_.decoder_sequence_length);
    }

    void append(const BlockTemplate& block, const std::string& name, const std::string& prefix,
                const TiedParameters& shared = {}) {
        append_block(model_, block, name, prefix, shared);
    }

    TensorSpec hidden_input() const { return hidden_tensor(hidden_, kernel_style(options_)); }

    /// Both stacks read the table that is registered first, "shared".
    void append_embedding(const std::string& stack, bool decoder) {
        BlockBuilder block(decoder ? "decoder embedding" : "embedding", token_tensor(),
                           kernel_style(options_));
        const auto table = block.parameter(decoder ? "decoder.embed_tokens.weight" : "shared.weight",
                                           {layers_.vocab_size, hidden_});
        TensorId x = block.embedding("embed_tokens", 0, table, hidden_);
        if (layers_.position_embedding == "learned")
            x = block.position_embedding("position_embeddings", x,
                                         block.parameter(stack + "position_embeddings.weight",
                                                         {layers_.max_position_embeddings, hidden_}),
                                         hidden_);
        if (options_.dropout) x = block.dropout("embedding.dropout", x, {.per_token = hidden_});
        BlockTemplate finished = block.finish(x);
        finished.kind.starts_from_batch = decoder;
        fix(finished.kind, decoder);
        TiedParameters shared;
        if (decoder) shared.push_back({table, 0});
        append(finished, stack + "embed_tokens", "", shared);
    }

    void append_stack(const DecoderNames& names, std::uint64_t count, bool decoder) {
        TransformerLayerExtras extras{.relative_buckets = config_.relative_buckets,
                                      .context_width = decoder ? hidden_ : 0,
                                      .length = decoder ? config_.decoder_sequence_length : 0};
        for (std::uint64_t i = 0; i < count; ++i) {
            if (i == 1) extras.relative_buckets = 0;
            const BlockTemplate layer = transformer_layer(layers_, names, options_, false, extras);
            const std::string name = fmt::format("{}block.{}", names.prefix, i);
            append(layer, name, name + ".");
            if (decoder) model_.blocks.back().context_from = encoder_end_;
        }
    }

    void append_encoder_end() {
        BlockBuilder block("encoder end", hidden_input(), kernel_style(options_));
        const Parameters norm = norm_parameters(block, layers_, "encoder.final_layer_norm", hidden_);
        TensorId x = block.norm("final_layer_norm", 0, hidden_, 1, norm, norm_);
        if (options_.dropout) x = block.dropout("final.dropout", x, {.per_token = hidden_});
        encoder_end_ = static_cast<std::uint32_t>(model_.blocks.size());
        append(block.finish(x), "encoder.final_layer_norm", "");
    }

    void append_head() {
        BlockBuilder block("head", hidden_input(), kernel_style(options_));
        const Parameters norm = norm_parameters(block, layers_, "decoder.final_layer_norm", hidden_);
        const auto weight = block.parameter("lm_head.weight", {layers_.vocab_size, hidden_});
        TensorId x = block.norm("final_layer_norm", 0, hidden_, 1, norm, norm_);
        if (options_.dropout) x = block.dropout("final.dropout", x, {.per_token = hidden_});
        if (layers_.tie_word_embeddings) x = block.scaled("head", x, hidden_);  // by 1/√d_model
        const TensorId labels = block.add_tensor(label_tensor());
        const TensorId loss =
            output_layer_with_loss(block, x, hidden_, layers_.vocab_size, {weight}, labels, options_);
        BlockTemplate head = block.finish_with_loss(loss, labels);
        fix(head.kind, true);
        TiedParameters shared;
        if (layers_.tie_word_embeddings) shared.push_back({weight, 0});
        append(head, "head", "", shared);
    }

    const EncoderDecoderConfig& config_;
    const DecoderConfig& layers_;
    const LoweringOptions& options_;
    std::uint64_t hidden_;
    NormKernel norm_;
    ModelSpec model_;
    std::uint32_t encoder_end_ = 0;
};

}  // namespace

ModelSpec build_t5(const EncoderDecoderConfig& config, const LoweringOptions& options) {
    return T5Builder(config, options).build();
}

}  // namespace zeroplan
