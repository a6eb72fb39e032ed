#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "zeroplan/error.hpp"

namespace zeroplan {

/// DeepSpeed's batch sizes, in sequences: train_batch_size = micro_batch × accumulation × data-parallel
/// ranks.
struct BatchSizes {
    std::optional<std::uint64_t> train;         ///< train_batch_size
    std::optional<std::uint64_t> micro_batch;   ///< train_micro_batch_size_per_gpu
    std::optional<std::uint64_t> accumulation;  ///< gradient_accumulation_steps
    friend bool operator==(const BatchSizes&, const BatchSizes&) = default;
};

/// The sizes that are absent, from the others, as DeepSpeed does it (runtime/config.py,
/// _set_batch_related_parameters): integer divisions, then the equation has to hold. Throws
/// Error{invalid_input} with the equation and the ways to make it hold. Needs train or micro_batch.
BatchSizes complete(const BatchSizes& stated, std::uint64_t ranks, const ErrorPlace& place);

/// The equation where the number of ranks is unknown: "train_batch_size 256 = 4 × 8 × 8 ranks: …".
std::string batch_in_words(const BatchSizes& stated);
/// With the ranks known.
std::string batch_in_words(const BatchSizes& complete, std::uint64_t ranks);

}  // namespace zeroplan
