#pragma once
#include <string_view>

#include "architectures/block_builder.hpp"

namespace zeroplan {

/// Activations that transformers writes out in Python ("gelu_new", "gelu_fast"): every step is a kernel of
/// its own, and every factor of a product is kept for backward. source: transformers/activations.py.
bool is_written_activation(std::string_view name);
BlockBuilder::TensorId written_activation(BlockBuilder& block, const std::string& name,
                                          BlockBuilder::TensorId x, std::uint64_t width,
                                          std::string_view activation);

}  // namespace zeroplan
