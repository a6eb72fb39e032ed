#pragma once
#include <cstddef>
#include <cstdint>

#include "zeroplan/dtype.hpp"
#include "zeroplan/training_config.hpp"

namespace zeroplan::runner {

/// Constants of an update; the defaults are PyTorch's, except that there is no default learning rate.
struct OptimizerSettings {
    Optimizer kind = Optimizer::sgd;
    double learning_rate = 0;
    double momentum = 0.9;
    double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
    double weight_decay = 0.01;  ///< of adamw only
    std::uint64_t step = 1;      ///< counted from 1
    float gradient_scale = 1;    ///< 1 / (ranks · micro-batches): turns the summed gradient into the mean
};

/// Stored elements that are updated together; absent ones are nullptr. With a master the update changes it,
/// and `parameters` get its rounded copy; without one the parameters are the master.
struct OptimizerOperands {
    void* parameters = nullptr;
    DType parameter_dtype = DType::fp32;
    const void* gradients = nullptr;
    DType gradient_dtype = DType::fp32;
    float* master = nullptr;
    float* momentum = nullptr;
    float* variance = nullptr;
};

/// Updates `n` elements, each by itself in fp32: the result doesn't depend on how they are cut into slices.
void optimizer_step(const OptimizerSettings& settings, const OptimizerOperands& operands, std::size_t n);

}  // namespace zeroplan::runner
