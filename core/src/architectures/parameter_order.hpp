#pragma once
#include <cstddef>

#include "zeroplan/model_spec.hpp"

namespace zeroplan {

/// Registers a parameter earlier than the block that uses it would: parameter `from` becomes parameter `to`
/// (to <= from), those between move up by one.
void move_parameter(ModelSpec& model, std::size_t from, std::size_t to);

}  // namespace zeroplan
