#include "engines/torch_optimizer.hpp"

#include <algorithm>

#include "zeroplan/units.hpp"

namespace zeroplan {
namespace {

constexpr std::uint64_t smallest_quantised = 4096;

bool has_second_moment(Optimizer optimizer) {
    return optimizer == Optimizer::adam || optimizer == Optimizer::adamw || optimizer == Optimizer::lamb;
}

std::vector<OptimizerTensor> plain(std::uint64_t numel, std::uint64_t tensors, DType dtype) {
    return std::vector<OptimizerTensor>(tensors, {numel, dtype});
}

/// Two moments of `bits` each, with one fp32 scale a block.
std::vector<OptimizerTensor> quantised(std::uint64_t numel, std::uint64_t bits, std::uint64_t block) {
    if (numel < smallest_quantised) return plain(numel, 2, DType::fp32);
    const OptimizerTensor codes{(numel * bits + 7) / 8, DType::uint8},
        scales{(numel + block - 1) / block, DType::fp32};
    return {codes, scales, codes, scales};
}

std::vector<OptimizerTensor> adafactor(std::uint64_t numel, const std::vector<std::uint64_t>& shape) {
    if (shape.size() < 2) return plain(numel, 1, DType::fp32);
    const std::uint64_t columns = shape.back();
    return {{columns == 0 ? 0 : numel / columns, DType::fp32}, {columns, DType::fp32}};
}

}  // namespace

std::vector<OptimizerTensor> optimizer_tensors(const TrainingConfig& training, std::uint64_t numel,
                                               const std::vector<std::uint64_t>& shape) {
    if (numel == 0) return {};
    switch (training.optimizer) {
        case Optimizer::adamw_8bit:
            return quantised(numel, 8, 256);
        case Optimizer::adamw_fp8:
            return quantised(numel, 8, 256);
        case Optimizer::adamw_4bit:
            return quantised(numel, 4, 128);
        case Optimizer::adafactor:
            return adafactor(numel, shape);
        case Optimizer::muon:
            // Matrices keep a momentum; everything else is trained with Adam.
            return plain(numel, shape.size() == 2 ? 1 : 2, training.optimizer_state_dtype);
        default:
            break;
    }
    std::vector<OptimizerTensor> states =
        plain(numel, optimizer_state_tensors(training.optimizer), training.optimizer_state_dtype);
    const bool step_on_device = training.optimizer_implementation == OptimizerImplementation::fused &&
                                has_second_moment(training.optimizer);
    if (step_on_device) states.insert(states.begin(), {1, DType::fp32});
    return states;
}

StepTemporaries step_temporaries(const TrainingConfig& training, const std::vector<std::uint64_t>& owned) {
    const std::uint64_t largest = owned.empty() ? 0 : *std::max_element(owned.begin(), owned.end());
    const auto largest_times = [&](std::uint64_t copies, DType dtype) {
        return StepTemporaries{plain(largest, largest == 0 ? 0 : copies, dtype)};
    };
    // transformers.Adafactor: the squared gradient, the update and its scaled copy of one parameter.
    if (training.optimizer == Optimizer::adafactor) return largest_times(3, DType::fp32);
    if (!has_second_moment(training.optimizer)) return {};
    const DType dtype = training.optimizer_state_dtype;
    switch (training.optimizer_implementation) {
        case OptimizerImplementation::for_loop:
            return largest_times(2, dtype);
        case OptimizerImplementation::foreach: {
            StepTemporaries result;
            for (const std::uint64_t numel : owned)
                if (numel > 0) result.all_at_once.push_back({numel, dtype});
            return result;
        }
        case OptimizerImplementation::fused:
        case OptimizerImplementation::in_backward:
            break;
    }
    return {};
}

}  // namespace zeroplan
