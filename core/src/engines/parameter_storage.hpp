#pragma once
#include "zeroplan/model_spec.hpp"
#include "zeroplan/training_config.hpp"

namespace zeroplan {

/// How many elements of which dtype a parameter takes where it is stored.
struct StoredAs {
    DType dtype = DType::fp32;
    bool packed = false;  ///< nf4: two elements a byte
    std::uint64_t elements(std::uint64_t numel) const { return packed ? (numel + 1) / 2 : numel; }
    friend bool operator==(const StoredAs&, const StoredAs&) = default;
};

/// The parameter's own storage, or else `by_default`.
StoredAs stored_as(const Parameter& parameter, DType by_default);

/// Bytes of nf4's block statistics with double quantisation: one a block of 64 elements, four a 256 blocks;
/// 0 for other storage.
/// source: bitsandbytes Params4bit (compress_statistics), torchao NF4Tensor (block 64, scaler block 256)
std::uint64_t statistics_bytes(const Parameter& parameter);

}  // namespace zeroplan
