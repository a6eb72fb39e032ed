#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "zeroplan/report.hpp"

namespace zeroplan {

enum class Colour { none, bold, dim, green, yellow, red };

/// Columns that a UTF-8 text takes on a terminal; every code point that reports use takes one.
std::size_t display_width(std::string_view text);

/// Rows of cells, aligned: the first column left, the others right unless told otherwise.
class Table {
public:
    explicit Table(std::vector<std::string> titles) : titles_(std::move(titles)) {}
    Table& left(std::size_t column);  ///< aligns a column left
    Table& row(std::vector<std::string> cells);
    Table& rule();  ///< a line before the next row
    bool empty() const { return rows_.empty(); }
    /// Lines without trailing spaces; a table whose titles are all empty has no title line.
    std::vector<std::string> lines() const;

private:
    std::vector<std::size_t> widths() const;
    std::string line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) const;

    std::vector<std::string> titles_;
    std::vector<std::vector<std::string>> rows_;
    std::vector<std::size_t> rules_, left_;
};

/// Text as it grows from top to bottom: verdict, headings, tables, paragraphs. What is put in is escaped
/// where a terminal would obey it instead of showing it: names of models and files are other people's.
class TextPage {
public:
    explicit TextPage(const TextStyle& style) : style_(style) {}
    void line(std::string_view text, Colour colour = Colour::none);
    /// An empty line, then the title in bold and the rest of the line plain.
    void heading(std::string_view title, std::string_view rest = {});
    void table(const Table& table, std::size_t indent = 2);
    /// Breaks `text` at spaces to the width; its first line starts with `label`, the others with as many
    /// spaces.
    void paragraph(std::string_view label, std::string_view text, Colour label_colour = Colour::none);
    std::size_t width() const { return style_.width; }
    std::string take() { return std::move(text_); }

private:
    std::string painted(std::string_view text, Colour colour) const;

    TextStyle style_;
    std::string text_;
};

/// A bar of `fraction` (0 to 1) of `width` columns, in eighths of a column.
std::string bar(double fraction, std::size_t width);

}  // namespace zeroplan
