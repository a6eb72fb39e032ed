#include "import/yaml_section.hpp"

#include <algorithm>
#include <charconv>
#include <map>

#include "nearest.hpp"

namespace zeroplan {
namespace {

/// Longer values are no setting; they would only swamp a message.
constexpr std::size_t longest_shown = 60;

std::string shown(const std::string& text) {
    return text.size() <= longest_shown ? text : text.substr(0, longest_shown) + "…";
}

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

std::size_t line_of(const YAML::Node& node) {
    return node.Mark().is_null() ? 0 : static_cast<std::size_t>(node.Mark().line) + 1;
}

/// YAML has no two equal keys in a mapping; PyYAML takes the last of them without a word, so that one of the
/// two isn't what was meant. source: YAML 1.2, 3.2.1.1; yaml/constructor.py, construct_mapping
void refuse_equal_keys(const Import& import, const YAML::Node& map, const std::string& path) {
    std::map<std::string, std::size_t> lines;
    for (const auto& item : map) {
        if (!item.first.IsScalar()) continue;
        const std::size_t line = line_of(item.first);
        const auto [first, is_new] = lines.try_emplace(item.first.Scalar(), line);
        if (!is_new)
            fail_at(import, line, path + first->first,
                    fmt::format("key \"{}\" is given twice: on lines {} and {}", shown(first->first),
                                first->second, line),
                    "keep one of the two");
    }
}

/// The value of `key`, undefined if there is none. Only scalars are keys here.
YAML::Node find(const YAML::Node& map, const std::string& key) {
    for (const auto& item : map)
        if (item.first.IsScalar() && item.first.Scalar() == key) return item.second;
    return YAML::Node(YAML::NodeType::Undefined);
}

}  // namespace

YamlSection::YamlSection(Import& import, YAML::Node node, std::string path)
    : import_(&import), node_(std::move(node)), path_(std::move(path)) {
    if (!node_.IsMap())
        fail_at(import, line_of(node_), path_.empty() ? "" : path_.substr(0, path_.size() - 1),
                "lines of \"key: value\" are expected here");
    refuse_equal_keys(import, node_, path_);
}

bool YamlSection::has(const std::string& key) const {
    const YAML::Node found = find(node_, key);
    return found.IsDefined() && !found.IsNull();
}

std::optional<std::string> YamlSection::text(const std::string& key) const {
    const YAML::Node found = find(node_, key);
    if (!found.IsDefined() || found.IsNull()) return std::nullopt;
    if (!found.IsScalar())
        fail(key, fmt::format("\"{}\" must be a single value", key), fmt::format("as in {}: value", key));
    if (found.Scalar().empty()) return std::nullopt;
    return found.Scalar();
}

std::optional<std::int64_t> YamlSection::integer(const std::string& key) const {
    const auto found = text(key);
    if (!found) return std::nullopt;
    std::int64_t value = 0;
    const char* end = found->data() + found->size();
    const auto parsed = std::from_chars(found->data(), end, value);
    if (parsed.ec != std::errc{} || parsed.ptr != end)
        fail(key, fmt::format("\"{}\" must be a whole number, but is {}", key, shown(*found)));
    return value;
}

std::optional<bool> YamlSection::flag(const std::string& key) const {
    const auto found = text(key);
    if (!found) return std::nullopt;
    const std::string word = lower(*found);
    for (const char* yes : {"true", "yes", "on", "y", "t", "1"})
        if (word == yes) return true;
    for (const char* no : {"false", "no", "off", "n", "f", "0"})
        if (word == no) return false;
    fail(key, fmt::format("\"{}\" must be true or false, but is {}", key, shown(*found)));
}

std::optional<YamlSection> YamlSection::section(const std::string& key) const {
    const YAML::Node found = find(node_, key);
    if (!found.IsDefined() || found.IsNull()) return std::nullopt;
    return YamlSection(*import_, found, path_ + key + ".");
}

std::vector<std::string> YamlSection::keys() const {
    std::vector<std::string> names;
    for (const auto& item : node_)
        if (item.first.IsScalar()) names.push_back(item.first.Scalar());
    return names;
}

std::size_t YamlSection::line(const std::string& key) const {
    for (const auto& item : node_)
        if (item.first.IsScalar() && item.first.Scalar() == key) return line_of(item.first);
    return line_of(node_);
}

void YamlSection::note(Finding finding, const std::string& key, std::string message, std::string hint) const {
    zeroplan::note(*import_, finding, name(key), line(key), std::move(message), std::move(hint));
}

void YamlSection::state(std::string pointer, std::string json_value, const std::string& key) const {
    zeroplan::state(*import_, std::move(pointer), std::move(json_value), line(key), name(key));
}

void YamlSection::state_word(std::string pointer, std::string_view word, const std::string& key) const {
    zeroplan::state_word(*import_, std::move(pointer), word, line(key), name(key));
}

void YamlSection::fail(const std::string& key, std::string message, std::string hint) const {
    fail_at(*import_, line(key), name(key), std::move(message), std::move(hint));
}

void YamlSection::fail_word(const std::string& key, const std::string& text,
                            std::span<const std::string_view> known) const {
    fail(key, fmt::format("\"{}\" cannot be \"{}\"", key, shown(text)), nearest_hint(text, known));
}

YamlSection parse_yaml(Import& import, std::string_view text) {
    try {
        return YamlSection(import, YAML::Load(std::string(text)), "");
    } catch (const YAML::Exception& error) {
        const std::size_t line = error.mark.is_null() ? 0 : static_cast<std::size_t>(error.mark.line) + 1;
        fail_at(import, line, "", fmt::format("not YAML: {}", error.msg),
                "is the indentation right, and are there spaces instead of tabs?");
    }
}

}  // namespace zeroplan
