#pragma once
#include <cstdint>
#include <vector>

#include "zeroplan/model_spec.hpp"
#include "zeroplan/shard_layout.hpp"

namespace zeroplan {

/// One unit a block (embedding; each layer; final norm and head; each linear of a plain stack). The flat
/// buffer holds the block's parameters in registration order, its end padded to a multiple of 8 · shard_group
/// elements, so that every slice starts on 16 bytes. A tied weight stands in the first unit that uses it;
/// later users list that unit in also_gathers.
ShardLayout native_layout(const ModelSpec& model, std::uint64_t shard_group);

/// Unit that holds each parameter's elements, by parameter; tied ones point to their owner's unit.
std::vector<std::uint32_t> units_of_parameters(const ModelSpec& model);

}  // namespace zeroplan
