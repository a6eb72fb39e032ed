#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <yaml-cpp/yaml.h>

#include "import/import_builder.hpp"

namespace zeroplan {

/// One mapping of a YAML file. Getters return nothing for a key that is absent, null or empty, and throw
/// Error{invalid_input} at its line for a value that can't be read. yaml-cpp stays behind this.
class YamlSection {
public:
    /// `path` is the mapping's name with a dot behind it, "" for the file itself. Throws if `node` is no
    /// mapping, or gives a key twice.
    YamlSection(Import& import, YAML::Node node, std::string path);

    bool has(const std::string& key) const;
    std::optional<std::string> text(const std::string& key) const;
    std::optional<std::int64_t> integer(const std::string& key) const;
    /// true, yes, on, 1 and their opposites, in any case, quoted or not: accelerate's str_to_bool.
    std::optional<bool> flag(const std::string& key) const;
    std::optional<YamlSection> section(const std::string& key) const;
    std::vector<std::string> keys() const;

    std::string name(const std::string& key) const { return path_ + key; }
    std::size_t line(const std::string& key) const;
    void note(Finding finding, const std::string& key, std::string message, std::string hint = {}) const;
    void state(std::string pointer, std::string json_value, const std::string& key) const;
    void state_word(std::string pointer, std::string_view word, const std::string& key) const;
    [[noreturn]] void fail(const std::string& key, std::string message, std::string hint = {}) const;
    /// `text` does not stand in `known`: fails with the nearest of them.
    [[noreturn]] void fail_word(const std::string& key, const std::string& text,
                                std::span<const std::string_view> known) const;
    Import& import() const { return *import_; }

private:
    Import* import_;
    YAML::Node node_;
    std::string path_;
};

/// The file's mapping. Throws Error{invalid_input} with the line for text that is no YAML.
YamlSection parse_yaml(Import& import, std::string_view text);

}  // namespace zeroplan
