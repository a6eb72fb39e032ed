#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "zeroplan/dtype.hpp"
#include "zeroplan/model_spec.hpp"
#include "zeroplan/shard_layout.hpp"

namespace zeroplan::runner {

/// The parameters a run starts from: weights and biases of a linear are uniform in ±1/√in, PyTorch's default
/// for nn.Linear. A value depends on seed, parameter and position only.
class InitialValues {
public:
    InitialValues(const ModelSpec& model, std::uint64_t seed);

    /// Writes elements [range.begin, range.end) of the unit's flat buffer to `to`, rounded to `dtype`;
    /// padding is 0.
    void fill(const UnitLayout& unit, ElementRange range, void* to, DType dtype) const;
    /// Elements [begin, begin + n) of one parameter, unrounded.
    void fill(std::uint32_t parameter, std::uint64_t begin, std::size_t n, float* to) const;

private:
    const ModelSpec& model_;
    std::uint64_t seed_;
    std::vector<float> bounds_;  ///< by parameter
};

}  // namespace zeroplan::runner
