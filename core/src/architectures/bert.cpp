#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "architectures/encoder.hpp"
#include "architectures/fixed_length.hpp"
#include "architectures/loss.hpp"
#include "architectures/pooled_classes.hpp"
#include "architectures/transformer_layer.hpp"

namespace zeroplan {
namespace {

using TensorId = BlockBuilder::TensorId;
using Parameters = std::vector<BlockBuilder::ParameterId>;

class BertBuilder {
public:
    BertBuilder(const DecoderConfig& config, BertKin kin, BertHead head, std::uint64_t labels,
                const LoweringOptions& options)
        : config_(config),
          names_(bert_names(kin)),
          head_(head),
          labels_(labels),
          options_(options),
          hidden_(config.hidden_size),
          norm_(norm_kernel(config, options)) {}

    ModelSpec build() {
        ModelSpec model = token_model(config_);
        model.encoder = config_;
        model.encoder->dropout = options_.dropout;
        model.max_sequence_length -= std::min(model.max_sequence_length - 1, names_.unused_positions);
        append_block(model, embeddings(), names_.embeddings, names_.embeddings + ".");
        const BlockTemplate layer = transformer_layer(config_, names_.layers, options_);
        for (std::uint64_t i = 0; i < config_.num_hidden_layers; ++i) {
            const std::string name = fmt::format("{}.{}", names_.layer_path, i);
            append_block(model, layer, name, name + ".");
        }
        append_head(model);
        return model;
    }

private:
    BlockTemplate embeddings() const {
        BlockBuilder block("embedding", token_tensor(), kernel_style(options_));
        const auto words = block.parameter("word_embeddings.weight", {config_.vocab_size, hidden_});
        const auto positions =
            block.parameter("position_embeddings.weight", {config_.max_position_embeddings, hidden_});
        std::optional<BlockBuilder::ParameterId> types;
        if (config_.token_types > 0)
            types = block.parameter("token_type_embeddings.weight", {config_.token_types, hidden_});
        const Parameters norm = norm_parameters(block, config_, "LayerNorm", hidden_);
        TensorId x = block.embedding("word_embeddings", 0, words, hidden_);
        if (types)
            x = block.residual_add("embeddings", x,
                                   block.embedding("token_type_embeddings", 0, *types, hidden_), hidden_);
        x = block.position_embedding("position_embeddings", x, positions, hidden_);
        x = block.norm("LayerNorm", x, hidden_, 1, norm, norm_);
        if (options_.dropout) x = block.dropout("embedding.dropout", x, {.per_token = hidden_});
        return block.finish(x);
    }

    /// Of what reads the first token: its dense layer, "" where there is none.
    std::string pooler() const {
        if (head_ == BertHead::sequence_classification) return names_.sequence_dense;
        return head_ == BertHead::none || head_ == BertHead::pretraining ? names_.pooler : "";
    }
    bool has_vocabulary() const {
        return head_ == BertHead::masked_language_model || head_ == BertHead::pretraining;
    }

    void append_head(ModelSpec& model) const {
        const KernelStyle style = kernel_style(options_);
        BlockBuilder block("head", hidden_tensor(hidden_, style), style);
        Parameters dense;
        if (!pooler().empty()) dense = block.linear_parameters(pooler(), hidden_, hidden_, true);
        BlockTemplate head = has_vocabulary() ? vocabulary_head(block, dense) : label_head(block, dense);
        TiedParameters shared;
        if (has_vocabulary() && config_.tie_word_embeddings)
            for (std::uint32_t p = 0; p < head.parameters.size(); ++p)
                if (head.parameters[p].suffix == names_.output_weight) shared.push_back({p, 0});
        append_block(model, head, "head", "", shared);
    }

    /// tanh(W · first token), or its ReLU, which the classifiers read; the token itself without a W.
    TensorId pooled(BlockBuilder& block, const Parameters& dense) const {
        const TensorId first = block.tensor("pooler.first_token", hidden_, block.style().residual());
        block.add({.name = "pooler.first_token",
                   .kind = OperatorKind::elementwise,
                   .inputs = {0},
                   .outputs = {first}});
        if (dense.empty()) return first;
        return block.activation(
            "pooler.activation", block.linear(pooler(), first, hidden_, hidden_, dense), hidden_,
            names_.relu_before_classifier ? ActivationFunction::relu : ActivationFunction::tanh);
    }

    BlockTemplate label_head(BlockBuilder& block, const Parameters& dense) const {
        const bool per_sequence = head_ != BertHead::token_classification;
        TensorId x = per_sequence ? pooled(block, dense) : 0;
        if (options_.dropout) x = block.dropout("classifier.dropout", x, {.per_token = hidden_});
        const TensorId labels = block.add_tensor(label_tensor());
        TensorId loss = 0;
        if (head_ == BertHead::none) {
            // Whatever is trained on BertModel is the user's; a loss over the pooled output stands for it.
            loss = loss_over(block, x, labels, hidden_);
        } else {
            const Parameters classifier = block.linear_parameters(
                per_sequence ? names_.sequence_classifier : "classifier", hidden_, labels_, true);
            loss = output_layer_with_loss(block, x, hidden_, labels_, classifier, labels, unfused());
        }
        BlockTemplate head = block.finish_with_loss(loss, labels);
        if (per_sequence) {
            fix_length(head.kind, 1, {0});
        }
        return head;
    }

    static TensorId loss_over(BlockBuilder& block, TensorId x, TensorId labels, std::uint64_t width) {
        const TensorId loss = block.add_tensor(loss_tensor());
        block.add({.name = "loss",
                   .kind = OperatorKind::cross_entropy,
                   .inputs = {x, labels},
                   .outputs = {loss},
                   .saved = {x, labels},
                   .forward_flops = {.per_token = width},
                   .backward_flops = {.per_token = width}});
        return loss;
    }

    /// Classifiers have a handful of labels: F.cross_entropy, whatever the scenario says of a vocabulary.
    LoweringOptions unfused() const {
        LoweringOptions options = options_;
        options.loss = LossKernel::eager;
        return options;
    }

    /// Dense, GELU and a norm, then the token table with a bias of its own.
    BlockTemplate vocabulary_head(BlockBuilder& block, const Parameters& pooler) const {
        const auto add_bias = [&] { return block.parameter(names_.output_bias, {config_.vocab_size}); };
        std::optional<BlockBuilder::ParameterId> bias;
        if (!names_.bias_behind_norm) bias = add_bias();
        const Parameters dense = block.linear_parameters(names_.transform, hidden_, hidden_, true);
        const Parameters norm = norm_parameters(block, config_, names_.transform_norm, hidden_);
        const auto weight = block.parameter(names_.output_weight, {config_.vocab_size, hidden_});
        if (!bias) bias = add_bias();
        TensorId x = block.linear("transform.dense", 0, hidden_, hidden_, dense);
        x = block.activation("transform.act", x, hidden_, ActivationFunction::gelu);
        x = block.norm("transform.LayerNorm", x, hidden_, 1, norm, norm_);
        PooledClasses classes;
        const bool both = head_ == BertHead::pretraining;
        if (both)
            classes.write(block, 0, hidden_, 2, pooler,
                          block.linear_parameters("cls.seq_relationship", hidden_, 2, true));
        const TensorId labels = block.add_tensor(label_tensor());
        const TensorId loss =
            output_layer_with_loss(block, x, hidden_, config_.vocab_size, {weight, *bias}, labels, options_);
        BlockTemplate head = block.finish_with_loss(loss, labels);
        if (both) classes.size(head.kind);
        return head;
    }

    const DecoderConfig& config_;
    const BertNames& names_;
    BertHead head_;
    std::uint64_t labels_;
    const LoweringOptions& options_;
    std::uint64_t hidden_;
    NormKernel norm_;
};

}  // namespace

ModelSpec build_bert(const DecoderConfig& config, BertKin kin, BertHead head, std::uint64_t labels,
                     const LoweringOptions& options) {
    return BertBuilder(config, kin, head, labels, options).build();
}

}  // namespace zeroplan
