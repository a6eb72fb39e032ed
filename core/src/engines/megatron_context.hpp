#pragma once
#include <algorithm>
#include <optional>

#include "engines/megatron_options.hpp"
#include "zeroplan/scenario.hpp"

namespace zeroplan {

/// How tokens spread over the experts, scenario key training.moe.
struct MoeOptions {
    std::optional<double> capacity_factor;  ///< every expert gets this share of the mean; nullopt: dropless
    double load_imbalance = 1;              ///< tokens of the busiest rank over the mean
    friend bool operator==(const MoeOptions&, const MoeOptions&) = default;
};
MoeOptions read_moe_options(const TrainingConfig& training);

/// What decides the shapes of one rank's modules.
struct MegatronContext {
    DecoderConfig decoder;
    AttentionKernel attention = AttentionKernel::flash;
    LossKernel loss = LossKernel::vocab_parallel;
    bool transformer_engine = true;
    bool fused_softmax = true;  ///< scale, mask and softmax are one 16-bit kernel
    bool te_cross_entropy = true;
    bool full_precision = false;  ///< compute_dtype fp32: no upcast in the loss
    std::uint64_t tensor = 1, context = 1, expert = 1, expert_tensor = 1;
    bool sequence = false;                               ///< sequence parallelism
    bool overlaps_tensor_parallel = false;               ///< tp_comm_overlap
    std::uint64_t micro_batch = 1, sequence_length = 1;  ///< of a rank: the sequence is divided by `context`
    bool tied = false;
    bool pretrains_bert = false;  ///< segments, a masked-language-model head and two classes a sequence
    std::optional<EncoderDecoderConfig> encoder_decoder{};  ///< T5; `decoder` then is one stack's layers
    MoeOptions moe;

    /// The same for the decoder of an encoder-decoder, whose sequences may be shorter.
    MegatronContext of_decoder() const;

    std::uint64_t tokens() const { return micro_batch * sequence_length; }
    std::uint64_t per_rank(std::uint64_t width) const { return width / tensor; }
    /// Width of a tensor between the tensor-parallel regions, in elements a token.
    std::uint64_t between(std::uint64_t width) const {
        return sequence ? (width + tensor - 1) / tensor : width;
    }
    bool gathers() const { return sequence && tensor > 1; }
    /// Tokens, counted once for each expert they go to, that one rank's experts work on.
    std::uint64_t routed_tokens() const;
    /// Position of the output layer's weight among the head block's parameters.
    std::uint32_t head_weight_position() const {
        const std::uint32_t behind_norm = decoder.normalization == "rmsnorm" ? 1 : 2;
        return pretrains_bert ? behind_norm + 4 : behind_norm;
    }
};

/// Tokens of one sequence that a rank works on: sequence_length / context_parallel.
std::uint64_t local_sequence_length(const TrainingConfig& training);

/// Vocabulary rows with which Megatron trains: as given if tensor_parallel divides it, else padded to a
/// multiple of 128 · tensor_parallel.
std::uint64_t padded_vocabulary(std::uint64_t vocabulary, std::uint64_t tensor_parallel);

/// Throws Error{invalid_input} where a size doesn't divide by tensor_parallel, Error{not_supported} for a
/// model that Megatron's rules here don't cover.
MegatronContext megatron_context(const Scenario& scenario, const MegatronOptions& options);

}  // namespace zeroplan
