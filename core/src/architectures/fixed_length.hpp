#pragma once
#include <cstdint>
#include <vector>

#include "architectures/block_builder.hpp"

namespace zeroplan {

/// The block over sequences of `length` tokens whatever the training's sequence length is: patches of an
/// image, a decoder's tokens, the one token that a classifier reads. `elsewhere` are tensors that stay as
/// long as the training's sequences (an encoder's output and what is projected from it); an operator all of
/// whose outputs are such stays too. A score between the two kinds is `length` a token.
void fix_length(BlockKind& kind, std::uint64_t length, const std::vector<std::uint32_t>& elsewhere = {},
                const std::vector<std::uint32_t>& crossing = {});

}  // namespace zeroplan
