#include "engines/megatron_layer.hpp"

#include <fmt/format.h>

#include <optional>

#include "engines/megatron_attention.hpp"
#include "engines/megatron_bert.hpp"
#include "engines/megatron_mlp.hpp"

namespace zeroplan {
namespace {

using TensorId = RankBlock::TensorId;
using Parameters = RankBlock::Parameters;

/// One transformer layer inside a block.
struct RankLayer {
    RankLayer(RankBlock& rank, bool experts) : attention(rank), mlp(rank, experts) {}
    Parameters input_norm, mlp_norm;
    RankAttention attention;
    RankMlp mlp;
};

/// Row maxima, predicted logits and sums of exponentials are all-reduced, one number a token each.
void reduce_over_vocabulary(RankBlock& rank) {
    if (rank.context().tensor == 1) return;
    for (int quantity = 0; quantity < 3; ++quantity)
        rank.communicate(CollectiveKind::all_reduce, GroupKind::tensor_group, CollectiveMoment::after_forward,
                         1, false, TensorDType::fp32);
}

/// _VocabParallelCrossEntropy: the logits become an fp32 softmax in place of a copy; their own gradient is
/// cast back to the compute dtype. Row maxima, sums and predicted logits are small.
///
/// Compiled (cross_entropy_fusion_impl native), the steps work on copies: the upcast logits stay beside the
/// softmax.
TensorId vocab_parallel_loss(RankBlock& rank, TensorId logits, TensorId labels, std::uint64_t vocabulary) {
    BlockBuilder& block = rank.builder();
    const std::uint64_t upcast =
        rank.context().loss == LossKernel::fused ? 2 * vocabulary : 0;  // 16-bit elements
    const TensorId softmax = block.tensor("softmax", vocabulary, TensorDType::fp32, Category::logits);
    const TensorId target = block.tensor("masked_target", 1, TensorDType::int64);
    const TensorId mask = block.tensor("target_mask", 1, TensorDType::mask);
    const TensorId loss = block.tensor("loss", 1, TensorDType::fp32);
    block.add({.name = "loss",
               .kind = OperatorKind::cross_entropy,
               .inputs = {logits, labels},
               .outputs = {softmax, target, mask, loss},
               .saved = {softmax, target, mask},
               .forward_flops = {.per_token = 5 * vocabulary},
               .backward_flops = {.per_token = 3 * vocabulary},
               .forward_workspace = {.per_token = 20 + upcast},
               .backward_workspace = {.per_token = 8}});
    reduce_over_vocabulary(rank);
    return loss;
}

/// Transformer Engine's cross-entropy writes the gradient over the logits in forward; so does Megatron's own
/// where logits are fp32 already.
TensorId in_place_loss(RankBlock& rank, TensorId logits, TensorId labels, std::uint64_t vocabulary) {
    BlockBuilder& block = rank.builder();
    const TensorId loss = block.tensor("loss", 1, TensorDType::fp32);
    block.add({.name = "loss",
               .kind = OperatorKind::cross_entropy,
               .inputs = {logits, labels},
               .outputs = {loss},
               .saved = {logits, labels},
               .forward_flops = {.per_token = 5 * vocabulary},
               .backward_flops = {.per_token = 3 * vocabulary},
               .forward_workspace = {.per_token = 20},
               .in_place = true});
    reduce_over_vocabulary(rank);
    return loss;
}

}  // namespace

std::uint64_t layers_recomputed_together(const TrainingConfig& training, const MegatronOptions& options) {
    if (training.recompute != Recompute::full || options.recompute_block) return 1;
    return options.recompute_num_layers.value_or(training.recompute_every);
}

BlockTemplate megatron_embedding(const MegatronContext& c) {
    const std::uint64_t hidden = c.decoder.hidden_size;
    RankBlock rank(
        c, "embedding",
        {.name = "tokens", .extent = {.per_token = 1}, .dtype = TensorDType::int64, .needs_gradient = false});
    BlockBuilder& block = rank.builder();
    const auto table = block.parameter("word_embeddings.weight", {c.decoder.vocab_size / c.tensor, hidden});
    TensorId x = block.embedding("word_embeddings", 0, table, hidden);
    if (c.tensor > 1 && !c.gathers())
        rank.communicate(CollectiveKind::all_reduce, GroupKind::tensor_group, CollectiveMoment::after_forward,
                         hidden);
    if (c.decoder.position_embedding == "learned") {
        const auto positions =
            block.parameter("position_embeddings.weight", {c.decoder.max_position_embeddings, hidden});
        const TensorId learned = block.embedding("position_embeddings", 0, positions, hidden);
        x = block.residual_add("embeddings", x, learned, hidden);
    }
    if (c.decoder.token_types != 0) {
        const auto types = block.parameter("tokentype_embeddings.weight", {c.decoder.token_types, hidden});
        const TensorId type = block.embedding("tokentype_embeddings", 0, types, hidden);
        x = block.residual_add("embeddings.with_types", x, type, hidden);
    }
    // Megatron-DeepSpeed's --embed-layernorm.
    if (c.decoder.embedding_norm)
        x = rank.norm("word_embeddings.norm", x, hidden, c.tokens(),
                      rank.norm_parameters("word_embeddings.norm", hidden));
    if (c.gathers()) {
        const TensorId scattered = block.tensor("scattered", c.between(hidden));
        block.add({.name = "scatter", .kind = OperatorKind::cast, .inputs = {x}, .outputs = {scattered}});
        rank.communicate(CollectiveKind::reduce_scatter, GroupKind::tensor_group,
                         CollectiveMoment::after_forward, hidden);
        rank.communicate(CollectiveKind::all_gather, GroupKind::tensor_group,
                         CollectiveMoment::before_backward, hidden);
        x = scattered;
    }
    if (c.decoder.dropout) x = block.dropout("embedding.dropout", x, {.per_token = c.between(hidden)});
    return block.finish(x);
}

BlockTemplate megatron_layers(const MegatronContext& c, std::uint64_t first, std::uint64_t count) {
    const std::uint64_t hidden = c.decoder.hidden_size;
    RankBlock rank(c, "layer", {.name = "input", .extent = {.per_token = c.between(hidden)}});
    std::vector<RankLayer> layers;
    layers.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::string prefix = i == 0 ? "" : fmt::format("+{}.", i);
        RankLayer& layer =
            layers.emplace_back(rank, c.decoder.experts && c.decoder.experts->has_experts(first + i));
        layer.input_norm = rank.norm_parameters(prefix + "input_layernorm", hidden);
        layer.attention.declare(prefix + "self_attention.");
        layer.mlp_norm = rank.norm_parameters(prefix + "pre_mlp_layernorm", hidden);
        layer.mlp.declare(prefix + "mlp.");
    }
    TensorId x = 0;
    for (RankLayer& layer : layers) {
        const TensorId normed = rank.layer_norm("input_layernorm", x, hidden, layer.input_norm);
        x = rank.dropout_add("self_attention", x, layer.attention.write(normed));
        const TensorId second = rank.layer_norm("pre_mlp_layernorm", x, hidden, layer.mlp_norm);
        x = rank.dropout_add("mlp", x, layer.mlp.write(second));
    }
    return rank.builder().finish(x, true);
}

BlockTemplate megatron_encoder_end(const MegatronContext& c) {
    const std::uint64_t hidden = c.decoder.hidden_size;
    RankBlock rank(c, "encoder end", {.name = "input", .extent = {.per_token = c.between(hidden)}});
    const Parameters norm = rank.norm_parameters("encoder.final_layernorm", hidden);
    return rank.builder().finish(rank.layer_norm("final_layernorm", 0, hidden, norm));
}

BlockTemplate megatron_head(const MegatronContext& c) {
    const std::uint64_t hidden = c.decoder.hidden_size, vocabulary = c.decoder.vocab_size / c.tensor;
    RankBlock rank(c, "head", {.name = "input", .extent = {.per_token = c.between(hidden)}});
    BlockBuilder& block = rank.builder();
    const Parameters norm = rank.norm_parameters("decoder.final_layernorm", hidden);
    std::optional<BertHeads> bert;
    if (c.pretrains_bert) bert.emplace(rank);
    Parameters output{block.parameter("output_layer.weight", {vocabulary, hidden})};
    if (bert || c.encoder_decoder) output.push_back(block.parameter("output_layer.bias", {vocabulary}));
    if (bert) bert->declare_classes();
    const TensorId normed = rank.layer_norm("final_layernorm", 0, hidden, norm);
    const TensorId labels = block.add_tensor(label_tensor());
    const TensorId read = bert ? bert->write(normed) : normed;
    const TensorId logits =
        rank.column_parallel("output_layer", read, hidden, vocabulary, output, Category::logits);
    // Megatron's own linear gathers into the global memory buffer, which is there anyway.
    if (c.gathers()) {
        block.last().forward_workspace = {};
        block.last().backward_workspace = {.per_token = hidden};
    }
    const bool in_place = c.full_precision || (c.loss == LossKernel::fused && c.te_cross_entropy);
    const TensorId loss = in_place ? in_place_loss(rank, logits, labels, vocabulary)
                                   : vocab_parallel_loss(rank, logits, labels, vocabulary);
    BlockTemplate head = block.finish_with_loss(loss, labels);
    if (bert) bert->size(head.kind);
    return head;
}

std::uint64_t memory_buffer_elements(const MegatronContext& c, bool has_head) {
    std::uint64_t most = 0;
    if (c.gathers() && (has_head || !c.transformer_engine)) most = c.tokens() * c.decoder.hidden_size;
    if (!c.transformer_engine && c.attention == AttentionKernel::eager)
        most = std::max(
            most, c.per_rank(c.decoder.num_attention_heads) * c.tokens() * c.sequence_length * c.context);
    return most;
}

}  // namespace zeroplan
