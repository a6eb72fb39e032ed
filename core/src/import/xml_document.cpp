#include "import/xml_document.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace zeroplan {
namespace {

std::size_t line_at(std::string_view text, std::ptrdiff_t offset) {
    const auto end = std::clamp<std::ptrdiff_t>(offset, 0, static_cast<std::ptrdiff_t>(text.size()));
    return 1 + static_cast<std::size_t>(std::count(text.begin(), text.begin() + end, '\n'));
}

}  // namespace

XmlDocument::XmlDocument(const Import& import, std::string_view text, const char* root)
    : import_(&import), text_(text) {
    const pugi::xml_parse_result result = document_.load_buffer(text_.data(), text_.size());
    if (!result)
        fail_at(import, line_at(text_, result.offset), "", fmt::format("not XML: {}", result.description()),
                "the file may have been cut off while it was copied");
    root_ = document_.child(root);
    if (!root_) fail_at(import, 1, "", fmt::format("no <{}> in this XML", root));
}

std::size_t XmlDocument::line(const pugi::xml_node& node) const {
    return line_at(text_, node.offset_debug());
}

std::optional<std::uint64_t> XmlDocument::integer(const pugi::xml_node& node, const char* attribute,
                                                  std::uint64_t most) const {
    const pugi::xml_attribute found = node.attribute(attribute);
    if (!found) return std::nullopt;
    std::string_view text = found.value();
    const bool hexadecimal = text.starts_with("0x");
    if (hexadecimal) text.remove_prefix(2);
    std::uint64_t value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
    if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || value > most)
        fail(node, fmt::format("{}=\"{}\" must be a whole number up to {}", attribute,
                               std::string_view(found.value()).substr(0, 40), most));
    return value;
}

std::optional<double> XmlDocument::number(const pugi::xml_node& node, const char* attribute,
                                          double most) const {
    const pugi::xml_attribute found = node.attribute(attribute);
    if (!found) return std::nullopt;
    const std::string_view text = found.value();
    double value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || !std::isfinite(value) ||
        value < 0 || value > most)
        fail(node,
             fmt::format("{}=\"{}\" must be a number from 0 to {}", attribute, text.substr(0, 40), most));
    return value;
}

void XmlDocument::fail(const pugi::xml_node& node, std::string message, std::string hint) const {
    fail_at(*import_, line(node), fmt::format("<{}>", node.name()), std::move(message), std::move(hint));
}

}  // namespace zeroplan
