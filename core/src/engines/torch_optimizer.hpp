#pragma once
#include <cstdint>
#include <vector>

#include "zeroplan/model_spec.hpp"
#include "zeroplan/training_config.hpp"

namespace zeroplan {

/// One tensor that an optimizer keeps for a parameter.
struct OptimizerTensor {
    std::uint64_t elements = 0;
    DType dtype = DType::fp32;
    friend bool operator==(const OptimizerTensor&, const OptimizerTensor&) = default;
};

/// Device tensors that `training`'s optimizer keeps for `numel` owned elements of a parameter of shape
/// `shape` (the owned part's shape), in order of creation; empty for what stays on the host.
///
/// sources: torch.optim (a fused or capturable Adam keeps its step count on the device), bitsandbytes (8 bit:
/// one byte a moment and an fp32 maximum a block of 256, fp32 below 4096 elements), torchao.optim (blocks of
/// 256 for 8 bit and fp8, of 128 for 4 bit; fp32 below 4096 elements), transformers.Adafactor (row and column
/// sums of matrices, no momentum)
std::vector<OptimizerTensor> optimizer_tensors(const TrainingConfig& training, std::uint64_t numel,
                                               const std::vector<std::uint64_t>& shape);

/// What a step allocates beside the states, given the owned elements of every trained parameter.
struct StepTemporaries {
    std::vector<OptimizerTensor> all_at_once;  ///< live together at the step's height
    friend bool operator==(const StepTemporaries&, const StepTemporaries&) = default;
};

/// foreach: the root of the second moment of every parameter at once; for_loop: the largest parameter's root
/// and its quotient; fused: nothing.
StepTemporaries step_temporaries(const TrainingConfig& training, const std::vector<std::uint64_t>& owned);

}  // namespace zeroplan
