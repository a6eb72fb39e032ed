#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <pugixml.hpp>

#include "import/import_builder.hpp"

namespace zeroplan {

/// An XML file whose elements know their lines. pugixml stays behind the NCCL readers.
class XmlDocument {
public:
    /// Throws Error{invalid_input} with the line for text that is no XML, or whose root is not `root`.
    XmlDocument(const Import& import, std::string_view text, const char* root);

    pugi::xml_node root() const { return root_; }
    std::size_t line(const pugi::xml_node& node) const;
    /// A whole number of an attribute, decimal or 0x…; nothing if it is absent. Fails at the element's line
    /// if it is none or exceeds `most`.
    std::optional<std::uint64_t> integer(const pugi::xml_node& node, const char* attribute,
                                         std::uint64_t most) const;
    std::optional<double> number(const pugi::xml_node& node, const char* attribute, double most) const;
    [[noreturn]] void fail(const pugi::xml_node& node, std::string message, std::string hint = {}) const;

private:
    const Import* import_;
    std::string text_;
    pugi::xml_document document_;
    pugi::xml_node root_;
};

}  // namespace zeroplan
