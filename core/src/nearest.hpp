#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zeroplan {

/// Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`; case and the difference
/// between
/// '-', '_' and ' ' count nothing.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate that `word` was most likely meant to be: the fewest edits, at most a third of the word's
/// length (and at least one); nothing if none is that near. The first of equals.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);
std::optional<std::string> nearest(std::string_view word, std::span<const std::string_view> candidates);

/// The hint of an error about an unknown word: `did you mean "x"?`, or the list of all candidates.
std::string nearest_hint(std::string_view word, std::span<const std::string_view> candidates);
std::string nearest_hint(std::string_view word, std::span<const std::string> candidates);

}  // namespace zeroplan
