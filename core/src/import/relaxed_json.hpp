#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace zeroplan {

/// JSON as people write configuration files: with comments (//, #, /* */) and trailing commas, which
/// DeepSpeed's reader (hjson) takes and a strict one doesn't.
struct RelaxedJson {
    nlohmann::json value;
    std::map<std::string, std::size_t> lines;  ///< line of every key and element, by JSON pointer
    std::optional<std::size_t> first_comment, first_trailing_comma;  ///< lines
    /// Line of `pointer`, or of the nearest object around it; 0 if unknown.
    std::size_t line_of(std::string pointer) const;
};

/// Throws Error{invalid_input} as parse_json does, with line and column of the original text.
RelaxedJson parse_relaxed_json(std::string_view text, const std::string& file);

}  // namespace zeroplan
