#include "engines/llm_c_memory.hpp"

#include <algorithm>

namespace zeroplan {

std::uint64_t llm_c_recompute_level(Recompute recompute) {
    if (recompute == Recompute::none) return 0;
    return recompute == Recompute::selective ? 1 : 2;
}

LlmCActivations llm_c_activations(const DecoderConfig& model, const TrainingConfig& training) {
    const std::uint64_t tokens = checked_product(training.micro_batch_size, training.sequence_length);
    const std::uint64_t width = model.hidden_size, layers = model.num_hidden_layers;
    const std::uint64_t heads = model.num_attention_heads, length = training.sequence_length;
    const std::uint64_t level = llm_c_recompute_level(training.recompute);
    const bool fused_attention = training.attention != AttentionKernel::eager;

    // encoded, final norm, and the scratch tensors of 4 and 1 widths.
    std::uint64_t once = (1 + 1 + 4 + 1) * width;
    // attention's output, both residuals, fully connected (4), packed queries, keys and values (3).
    std::uint64_t each = (1 + 2 + 4 + 3) * width;
    if (level < 2) each += 2 * width;        // both layer norms
    (level < 1 ? each : once) += 4 * width;  // GELU
    std::uint64_t statistics = 4;            // mean and reciprocal deviation of both layer norms
    if (fused_attention)
        statistics += heads;
    else
        each += heads * length;  // scores
    return {.compute = tokens * (once + layers * each),
            .output = tokens * std::max({3 * width, heads * length, model.vocab_size}),
            .fp32 = tokens * (layers * statistics + 3)};
}

std::uint64_t llm_c_shards(const ModelSpec& model, const TrainingConfig& training) {
    const std::uint64_t ranks = training.data_parallel;
    return training.zero_stage == 1 && model.parameter_count() % ranks == 0 ? ranks : 1;
}

}  // namespace zeroplan
