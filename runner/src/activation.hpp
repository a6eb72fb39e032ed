#pragma once
#include <cstddef>

#include "zeroplan/dtype.hpp"
#include "zeroplan/model_spec.hpp"

namespace zeroplan::runner {

/// y[i] = f(x[i]). gelu is the exact one, x·Φ(x), as PyTorch's default. y may be x.
void activation_forward(ActivationFunction function, const void* x, void* y, std::size_t n, DType dtype);

/// dx[i] = dy[i] · f'(x[i]). `saved` is x, or y where f' can be told from it (relu, tanh, none). dx may be
/// dy.
void activation_backward(ActivationFunction function, const void* dy, const void* saved, bool saved_is_output,
                         void* dx, std::size_t n, DType dtype);

/// True if backward works from the output alone.
bool output_suffices(ActivationFunction function);

}  // namespace zeroplan::runner
