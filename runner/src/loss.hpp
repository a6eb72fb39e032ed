#pragma once
#include <cstddef>
#include <cstdint>

#include "zeroplan/dtype.hpp"

namespace zeroplan::runner {

/// Losses of a micro-batch of `rows` samples with `columns` values each. Forward returns the sum over the
/// samples, in fp64, of each sample's loss; backward writes the gradient of their mean. No rows: 0, nothing
/// is written.

/// A sample's loss is the mean of (prediction - target)² over its columns.
double mse_forward(const void* prediction, const void* target, std::size_t rows, std::size_t columns,
                   DType dtype);
void mse_backward(const void* prediction, const void* target, void* gradient, std::size_t rows,
                  std::size_t columns, DType dtype);

/// A sample's loss is log Σ exp(logits) - logits[label]. The gradient may overwrite the logits.
double cross_entropy_forward(const void* logits, const std::int64_t* labels, std::size_t rows,
                             std::size_t columns, DType dtype);
void cross_entropy_backward(const void* logits, const std::int64_t* labels, void* gradient, std::size_t rows,
                            std::size_t columns, DType dtype);

}  // namespace zeroplan::runner
