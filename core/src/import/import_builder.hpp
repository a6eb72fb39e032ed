#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "zeroplan/import.hpp"

namespace zeroplan {

/// "line 7: zero_optimization.stage", "line 7", "zero_optimization.stage"
inline std::string where(std::size_t line, std::string_view key) {
    if (line == 0) return std::string(key);
    return key.empty() ? fmt::format("line {}", line) : fmt::format("line {}: {}", line, key);
}

/// Throws Error{invalid_input} at a line of the imported file.
[[noreturn]] inline void fail_at(const Import& import, std::size_t line, std::string_view key,
                                 std::string message, std::string hint = {}) {
    throw Error(ErrorCode::invalid_input, std::move(message), std::move(hint),
                {import.file, where(line, key)});
}

inline void note(Import& import, Finding finding, std::string key, std::size_t line, std::string message,
                 std::string hint = {}) {
    import.findings.push_back({finding, std::move(key), line, std::move(message), std::move(hint), {}});
}

/// Something that the file leaves open and the key `pointer` of the scenario tells.
inline void ask(Import& import, std::string pointer, std::string key, std::size_t line, std::string message,
                std::string hint) {
    import.findings.push_back(
        {Finding::missing, std::move(key), line, std::move(message), std::move(hint), std::move(pointer)});
}

/// States `pointer` of the scenario; `json_value` is JSON text.
inline void state(Import& import, std::string pointer, std::string json_value, std::size_t line,
                  std::string_view key) {
    import.scenario.settings.push_back({std::move(pointer), std::move(json_value), where(line, key)});
}
inline void state_word(Import& import, std::string pointer, std::string_view word, std::size_t line,
                       std::string_view key) {
    import.scenario.settings.push_back(word_setting(std::move(pointer), word, where(line, key)));
}

inline void figure(Import& import, std::string name, double value, std::string unit, std::string note = {}) {
    import.figures.push_back({std::move(name), value, std::move(unit), std::move(note)});
}

}  // namespace zeroplan
