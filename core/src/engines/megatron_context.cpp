#include "engines/megatron_context.hpp"

#include <fmt/format.h>

#include <cmath>

#include "zeroplan/units.hpp"

namespace zeroplan {
namespace {

void check_divides(std::uint64_t size, std::uint64_t degree, const char* what, const char* degree_name) {
    if (size % degree == 0) return;
    throw Error(ErrorCode::invalid_input,
                fmt::format("{} {} doesn't divide by {} {}", what, size, degree_name, degree),
                fmt::format("choose a {} that divides it", degree_name),
                {"", fmt::format("/training/{}", degree_name)});
}

void check_sizes(const MegatronContext& c) {
    const DecoderConfig& d = c.decoder;
    check_divides(d.num_attention_heads, c.tensor, "num_attention_heads", "tensor_parallel");
    check_divides(d.intermediate_size, c.tensor, "intermediate_size", "tensor_parallel");
    check_divides(c.sequence_length, c.gathers() ? c.tensor : 1, "the rank's sequence length",
                  "tensor_parallel");
    if (!d.experts) return;
    check_divides(d.experts->count, c.expert, "the number of experts", "expert_parallel");
    check_divides(d.experts->intermediate_size, c.expert_tensor, "the experts' intermediate size",
                  "expert_tensor_parallel");
}

/// Of decoders, of BERT's encoder, or of both of T5's stacks.
const DecoderConfig& layers_of(const ModelSpec& model) {
    if (model.decoder) return *model.decoder;
    if (model.encoder) return *model.encoder;
    if (model.encoder_decoder) return model.encoder_decoder->layers;
    throw Error(ErrorCode::not_supported,
                fmt::format("engine megatron divides transformers only, not '{}'", model.architecture),
                "choose a transformer model, or another engine", {"", "/model"});
}

/// Megatron's TransformerLayer norms before each branch; BERT too, whatever transformers' class does.
void check_layers(const DecoderConfig& d, const Scenario& scenario) {
    const bool bert = scenario.model.encoder.has_value();
    const char* what = nullptr;
    if (d.branch_order != BranchOrder::sequential) what = "attention and MLP side by side";
    if (d.norm_placement != NormPlacement::before && !bert) what = "norms behind its branches";
    if (d.lm_head_bias) what = "an output layer with a bias";
    if (d.embedding_width != 0) what = "an embedding narrower than the model";
    if (d.caps_scores || d.caps_logits) what = "capped scores or logits";
    if (d.scales_logits) what = "scaled logits";
    if (!d.layers_without_rope.empty()) what = "layers without rotary embedding among others";
    if (d.head_norms_after_rope || d.head_norm_rows) what = "norms of heads that are not Qwen 3's";
    if (d.whole_width_head_norms) what = "norms over all heads at once";
    if (!d.norm_weight) what = "norms without parameters";
    if (d.clips_qkv) what = "clamped queries, keys and values";
    if (d.attention_sinks) what = "attention sinks";
    if (d.experts && d.experts->biases) what = "experts with biases";
    if (what != nullptr)
        throw Error(ErrorCode::not_supported,
                    fmt::format("{} has {}, which Megatron's layers are not modelled with",
                                scenario.model.architecture, what),
                    "choose engine fsdp1, fsdp2, ddp or deepspeed", {"", "/training/engine"});
    if (scenario.model.encoder_decoder && scenario.training.pipeline_parallel > 1)
        throw Error(
            ErrorCode::not_supported,
            fmt::format("pipeline stages of an encoder-decoder are not modelled (pipeline_parallel {})",
                        scenario.training.pipeline_parallel),
            "set pipeline_parallel to 1", {"", "/training/pipeline_parallel"});
}

}  // namespace

MegatronContext MegatronContext::of_decoder() const {
    MegatronContext c = *this;
    if (encoder_decoder->decoder_sequence_length != 0)
        c.sequence_length = encoder_decoder->decoder_sequence_length / context;
    return c;
}

std::uint64_t MegatronContext::routed_tokens() const {
    const ExpertConfig& experts = *decoder.experts;
    const std::uint64_t own = gathers() ? tokens() / tensor : tokens();
    const double routed = static_cast<double>(own) * static_cast<double>(experts.per_token);
    // Experts whose weights are split see the tokens of all ranks that share them.
    if (moe.capacity_factor) {
        const double mean = routed / static_cast<double>(experts.count);
        const auto capacity = static_cast<std::uint64_t>(std::ceil(mean * *moe.capacity_factor));
        return capacity * experts.count * expert_tensor;
    }
    return static_cast<std::uint64_t>(std::ceil(routed * moe.load_imbalance)) * expert_tensor;
}

std::uint64_t local_sequence_length(const TrainingConfig& training) {
    return training.sequence_length / training.context_parallel;
}

std::uint64_t padded_vocabulary(std::uint64_t vocabulary, std::uint64_t tensor_parallel) {
    if (vocabulary % tensor_parallel == 0) return vocabulary;
    return round_up(vocabulary, checked_product(128, tensor_parallel));
}

MegatronContext megatron_context(const Scenario& scenario, const MegatronOptions& options) {
    const TrainingConfig& training = scenario.training;
    const DecoderConfig& layers = layers_of(scenario.model);
    check_layers(layers, scenario);
    check_divides(training.sequence_length, training.context_parallel, "sequence_length", "context_parallel");
    MegatronContext c{.decoder = layers,
                      .attention = training.attention,
                      .loss = training.loss,
                      .transformer_engine = options.transformer_engine,
                      .fused_softmax = options.transformer_engine || options.masked_softmax_fusion,
                      .te_cross_entropy = options.transformer_engine_cross_entropy,
                      .full_precision = bytes_per_element(training.compute_dtype) == 4,
                      .tensor = training.tensor_parallel,
                      .context = training.context_parallel,
                      .expert = training.expert_parallel,
                      .expert_tensor = training.expert_tensor_parallel,
                      .sequence = training.sequence_parallel,
                      .overlaps_tensor_parallel =
                          training.async_tensor_parallel || options.tensor_parallel_overlap.value_or(false),
                      .micro_batch = training.micro_batch_size,
                      .sequence_length = local_sequence_length(training),
                      .pretrains_bert = scenario.model.encoder.has_value(),
                      .encoder_decoder = scenario.model.encoder_decoder,
                      .moe = read_moe_options(training)};
    c.tied = c.decoder.tie_word_embeddings;
    c.decoder.vocab_size = padded_vocabulary(c.decoder.vocab_size, c.tensor);
    check_sizes(c);
    return c;
}

}  // namespace zeroplan
