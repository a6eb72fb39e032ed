#include "architectures/decoder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "architectures/block_builder.hpp"
#include "architectures/loss.hpp"
#include "architectures/parameter_order.hpp"
#include "architectures/transformer_layer.hpp"
#include "zeroplan/units.hpp"

namespace zeroplan {
namespace {

using TensorId = BlockBuilder::TensorId;
using Parameters = std::vector<BlockBuilder::ParameterId>;

class DecoderBuilder {
public:
    DecoderBuilder(const DecoderConfig& config, const DecoderNames& names, const LoweringOptions& options)
        : config_(config),
          names_(names),
          options_(options),
          hidden_(config.hidden_size),
          table_width_(config.embedding_width != 0 ? config.embedding_width : hidden_),
          norm_(norm_kernel(config, options)) {}

    ModelSpec build() {
        ModelSpec model = token_model(config_);
        model.decoder = config_;
        model.decoder->dropout = options_.dropout;
        append_to(model, 0);
        return model;
    }

    void append_to(ModelSpec& model, std::uint64_t image_tokens) {
        const std::string& prefix = config_.parameter_prefix;
        table_ = static_cast<std::uint32_t>(model.parameters.size());
        append_block(model, embedding_block(image_tokens), prefix + names_.embedding, prefix);
        if (image_tokens != 0)
            model.blocks.back().context_from = static_cast<std::uint32_t>(model.blocks.size() - 2);
        const std::size_t layers_at = model.parameters.size();
        append_layers(model);
        append_head(model);
        if (names_.final_norm_first) register_head_early(model, layers_at);
    }

private:
    /// Layers with experts and without, with rotary embedding and without, are kinds of their own.
    void append_layers(ModelSpec& model) const {
        std::array<std::optional<BlockTemplate>, 4> layers;
        const auto& unrotated = config_.layers_without_rope;
        for (std::uint64_t i = 0; i < config_.num_hidden_layers; ++i) {
            const bool experts = config_.experts && config_.experts->has_experts(i);
            const bool rotates = !std::binary_search(unrotated.begin(), unrotated.end(), i);
            std::optional<BlockTemplate>& layer = layers[(experts ? 1U : 0U) + (rotates ? 2U : 0U)];
            if (!layer) layer = transformer_layer(config_, names_, options_, experts, {.rotates = rotates});
            const std::string name = fmt::format("{}{}.{}", config_.parameter_prefix, names_.layers, i);
            append_block(model, *layer, name, name + ".");
        }
    }

    BlockTemplate embedding_block(std::uint64_t image_tokens) const {
        BlockBuilder block("embedding", token_tensor(), kernel_style(options_));
        const auto table = block.parameter(names_.embedding + ".weight", {config_.vocab_size, table_width_});
        const bool learned = config_.position_embedding == "learned";
        BlockBuilder::ParameterId positions = 0;
        if (learned)
            positions = block.parameter(
                names_.positions + ".weight",
                {checked_sum(config_.max_position_embeddings, config_.extra_positions, "positions"),
                 hidden_});
        TensorId x = block.embedding(names_.embedding, 0, table, table_width_);
        if (table_width_ != hidden_)
            x = block.linear(names_.project_in, x, table_width_, hidden_,
                             block.linear_parameters(names_.project_in, table_width_, hidden_, false));
        if (learned) x = block.position_embedding(names_.positions, x, positions, hidden_);
        if (config_.scales_embedding) x = block.scaled("embedding", x, hidden_);
        if (config_.embedding_norm)
            x = block.norm(names_.embedding_norm, x, hidden_, 1,
                           norm_parameters(block, config_, names_.embedding_norm, hidden_), norm_);
        if (options_.dropout) x = block.dropout("embedding.dropout", x, {.per_token = hidden_});
        std::optional<TensorId> images;
        if (image_tokens != 0) x = with_images(block, x, image_tokens, images);
        BlockTemplate finished = block.finish(x);
        finished.kind.starts_from_batch = image_tokens != 0;
        finished.kind.context_tensor = images;
        return finished;
    }

    /// masked_scatter of the images' features over the tokens that stand for them.
    TensorId with_images(BlockBuilder& block, TensorId x, std::uint64_t tokens,
                         std::optional<TensorId>& images) const {
        images = block.add_tensor({.name = "images",
                                   .extent = {.per_sequence = checked_product(tokens, hidden_)},
                                   .dtype = block.style().residual()});
        const TensorId out = block.tensor("embedding.with_images", hidden_, block.style().residual());
        block.add({.name = "embedding.with_images",
                   .kind = OperatorKind::elementwise,
                   .inputs = {x, *images},
                   .outputs = {out}});
        return out;
    }

    void append_head(ModelSpec& model) const {
        const std::string& prefix = config_.parameter_prefix;
        const KernelStyle style = kernel_style(options_);
        BlockBuilder block("head", hidden_tensor(hidden_, style), style);
        TensorId x = 0;
        if (config_.final_norm)
            x = block.norm(names_.final_norm, x, hidden_, 1,
                           norm_parameters(block, config_, prefix + names_.final_norm, hidden_), norm_);
        if (table_width_ != hidden_) {
            const std::string module = prefix + names_.project_out;
            x = block.linear(names_.project_out, x, hidden_, table_width_,
                             block.linear_parameters(module, hidden_, table_width_, false));
        }
        const Parameters output =
            block.linear_parameters(names_.head, table_width_, config_.vocab_size, config_.lm_head_bias);
        const TensorId labels = block.add_tensor(label_tensor());
        const TensorId loss =
            output_layer_with_loss(block, x, table_width_, config_.vocab_size, output, labels, options_,
                                   {config_.scales_logits, config_.caps_logits});
        TiedParameters shared;
        if (config_.tie_word_embeddings) shared.push_back({output[0], table_});
        append_block(model, block.finish_with_loss(loss, labels), "head", "", shared);
    }

    /// OPTDecoder.__init__: the tables, project_out, project_in, the final norm, then the layers.
    void register_head_early(ModelSpec& model, std::size_t layers_at) const {
        const auto move = [&](const std::string& module, std::size_t to) {
            const std::string start = config_.parameter_prefix + module + ".";
            for (std::size_t from = layers_at; from < model.parameters.size(); ++from)
                if (model.parameters[from].name.starts_with(start)) move_parameter(model, from, to++);
            return to;
        };
        const bool projects = table_width_ != hidden_;
        const std::size_t next = projects ? move(names_.project_out, layers_at - 1) + 1 : layers_at;
        if (config_.final_norm) move(names_.final_norm, next);
    }

    const DecoderConfig& config_;
    const DecoderNames& names_;
    const LoweringOptions& options_;
    std::uint64_t hidden_, table_width_;
    NormKernel norm_;
    std::uint32_t table_ = 0;  ///< the token table's parameter
};

}  // namespace

ModelSpec build_decoder(const DecoderConfig& config, const DecoderNames& names,
                        const LoweringOptions& options) {
    return DecoderBuilder(config, names, options).build();
}

void append_decoder(ModelSpec& model, const DecoderConfig& config, const DecoderNames& names,
                    const LoweringOptions& options, std::uint64_t image_tokens) {
    DecoderBuilder(config, names, options).append_to(model, image_tokens);
}

ModelSpec build_decoder(const DecoderConfig& config, const LoweringOptions& options) {
    return build_decoder(config, decoder_names(config.family), options);
}

ModelSpec build_llama(const DecoderConfig& config, const LoweringOptions& options) {
    return build_decoder(config, decoder_names("llama"), options);
}

ModelSpec build_gpt2(const DecoderConfig& config, const LoweringOptions& options) {
    return build_decoder(config, decoder_names("gpt2"), options);
}

}  // namespace zeroplan
