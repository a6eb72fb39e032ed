#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace zeroplan::fuzz {

/// One change to the structure of a text: a token (word, number, run of space, single mark) becomes a word of
/// the format, moves, is said twice or goes away. Deterministic in `seed`.
std::string mutate_tokens(std::string_view text, std::span<const std::string_view> words, std::uint32_t seed);

}  // namespace zeroplan::fuzz
