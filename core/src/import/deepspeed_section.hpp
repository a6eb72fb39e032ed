#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "import/import_builder.hpp"
#include "import/relaxed_json.hpp"

namespace zeroplan {

/// One object of a DeepSpeed configuration. Getters give what a value means, note what DeepSpeed makes of the
/// way it is written, and throw Error{invalid_input} at its line where it means nothing. They return nothing
/// for a key that is absent or null.
class DeepSpeedSection {
public:
    DeepSpeedSection(Import& import, const RelaxedJson& document, std::string pointer);

    const nlohmann::json* find(std::string_view key) const;
    bool has(std::string_view key) const { return find(key) != nullptr; }
    bool is_auto(std::string_view key) const;
    std::optional<DeepSpeedSection> section(std::string_view key) const;

    /// A whole number ≥ least. "5e8" and 15099494.4 are read as 500000000 and 15099494 and noted as rejected.
    /// Nothing for "auto".
    std::optional<std::uint64_t> count(std::string_view key, std::uint64_t least = 0) const;
    std::optional<bool> flag(std::string_view key) const;
    std::optional<std::string> word(std::string_view key) const;
    std::optional<double> number(std::string_view key, double least, double most) const;

    /// Notes every key that is not in `known` as rejected: the section's class forbids extra keys.
    void forbid_others(std::span<const std::string_view> known) const;

    std::string name(std::string_view key) const;  ///< "zero_optimization.stage"
    std::size_t line(std::string_view key) const;
    void note(Finding finding, std::string_view key, std::string message, std::string hint = {}) const;
    void ask(std::string pointer, std::string_view key, std::string message, std::string hint) const;
    void state(std::string pointer, std::string json_value, std::string_view key) const;
    void state_word(std::string pointer, std::string_view word, std::string_view key) const;
    [[noreturn]] void fail(std::string_view key, std::string message, std::string hint = {}) const;
    const nlohmann::json& value() const { return *value_; }
    Import& import() const { return *import_; }
    /// The same object, with what there is to say noted in `import`.
    DeepSpeedSection in(Import& import) const { return {import, *document_, pointer_}; }

private:
    [[noreturn]] void fail_type(std::string_view key, const char* expected) const;
    std::uint64_t whole(std::string_view key, double number, std::uint64_t least) const;

    Import* import_;
    const RelaxedJson* document_;
    std::string pointer_;
    const nlohmann::json* value_;
};

}  // namespace zeroplan
