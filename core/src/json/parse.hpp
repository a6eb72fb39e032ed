#pragma once
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace zeroplan {

/// Objects and arrays inside one another; more is an attack or a mistake, not a scenario.
inline constexpr std::size_t deepest_json = 64;

/// JSON text to a value. Throws Error{invalid_input} with `file` and line and column for text that is no JSON
/// (truncated, NaN and Infinity, which Python writes, a number that no double holds), with the JSON pointer
/// for a key given twice in one object or for nesting deeper than `deepest_json`.
nlohmann::json parse_json(std::string_view text, const std::string& file);

}  // namespace zeroplan
