#include "report/text_page.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "printable.hpp"

namespace zeroplan {
namespace {

const char* code_of(Colour colour) {
    switch (colour) {
        case Colour::bold:
            return "1";
        case Colour::dim:
            return "2";
        case Colour::green:
            return "1;32";
        case Colour::yellow:
            return "1;33";
        case Colour::red:
            return "1;31";
        case Colour::none:
            break;
    }
    return "";
}

void strip_right(std::string& text) {
    text.erase(text.find_last_not_of(' ') + 1);
}

}  // namespace

std::size_t display_width(std::string_view text) {
    // Bytes 10xxxxxx continue a code point.
    return static_cast<std::size_t>(std::count_if(
        text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

Table& Table::left(std::size_t column) {
    left_.push_back(column);
    return *this;
}

Table& Table::row(std::vector<std::string> cells) {
    cells.resize(titles_.size());
    for (std::string& cell : cells) cell = printable(cell);
    rows_.push_back(std::move(cells));
    return *this;
}

Table& Table::rule() {
    rules_.push_back(rows_.size());
    return *this;
}

std::vector<std::size_t> Table::widths() const {
    std::vector<std::size_t> widths(titles_.size());
    for (std::size_t c = 0; c < titles_.size(); ++c) {
        widths[c] = display_width(titles_[c]);
        for (const auto& row : rows_) widths[c] = std::max(widths[c], display_width(row[c]));
    }
    return widths;
}

std::string Table::line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) const {
    std::string text;
    for (std::size_t c = 0; c < cells.size(); ++c) {
        const std::string fill(widths[c] - display_width(cells[c]), ' ');
        const bool to_left = c == 0 || std::find(left_.begin(), left_.end(), c) != left_.end();
        if (c > 0) text += "  ";
        text += to_left ? cells[c] + fill : fill + cells[c];
    }
    strip_right(text);
    return text;
}

std::vector<std::string> Table::lines() const {
    const std::vector<std::size_t> columns = widths();
    std::vector<std::string> lines;
    const bool titled = std::any_of(titles_.begin(), titles_.end(), [](const auto& t) { return !t.empty(); });
    if (titled) lines.push_back(line(titles_, columns));
    // A column of bars at the right has no need of a line.
    std::size_t ruled = columns.size();
    while (ruled > 1 && std::find(left_.begin(), left_.end(), ruled - 1) != left_.end()) --ruled;
    std::size_t total = 2 * (ruled - 1);
    for (std::size_t c = 0; c < ruled; ++c) total += columns[c];
    for (std::size_t r = 0; r < rows_.size(); ++r) {
        if (std::find(rules_.begin(), rules_.end(), r) != rules_.end()) {
            std::string rule;
            for (std::size_t i = 0; i < total; ++i) rule += "─";
            lines.push_back(rule);
        }
        lines.push_back(line(rows_[r], columns));
    }
    return lines;
}

std::string TextPage::painted(std::string_view text, Colour colour) const {
    if (!style_.colour || colour == Colour::none) return std::string(text);
    return fmt::format("\033[{}m{}\033[0m", code_of(colour), text);
}

void TextPage::line(std::string_view text, Colour colour) {
    text_ += painted(printable(text), colour);
    text_ += '\n';
}

void TextPage::heading(std::string_view title, std::string_view rest) {
    text_ += '\n' + painted(printable(title), Colour::bold);
    text_ += printable(rest);
    text_ += '\n';
}

void TextPage::table(const Table& table, std::size_t indent) {
    for (const std::string& row : table.lines()) line(std::string(indent, ' ') + row);
}

void TextPage::paragraph(std::string_view raw_label, std::string_view raw_text, Colour label_colour) {
    const std::string label = printable(raw_label), all = printable(raw_text);
    std::string_view text = all;
    const std::size_t indent = display_width(label);
    const std::size_t room = std::max<std::size_t>(style_.width > indent ? style_.width - indent : 0, 20);
    std::string line = painted(label, label_colour);
    std::size_t used = 0;
    while (!text.empty()) {
        const auto end = std::min(text.find(' '), text.size());
        const std::string_view word = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        const std::size_t width = display_width(word);
        if (used > 0 && used + 1 + width > room) {
            text_ += line + '\n';
            line = std::string(indent, ' ');
            used = 0;
        }
        if (used > 0) line += ' ';
        line += word;
        used += width + (used > 0 ? 1 : 0);
    }
    strip_right(line);
    text_ += line + '\n';
}

std::string bar(double fraction, std::size_t width) {
    static constexpr const char* eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const double clamped = std::clamp(fraction, 0.0, 1.0);
    const auto parts = static_cast<std::size_t>(std::lround(clamped * static_cast<double>(width) * 8));
    std::string text;
    for (std::size_t i = 0; i < parts / 8; ++i) text += "█";
    text += eighths[parts % 8];
    if (text.empty() && fraction > 0) text = eighths[1];
    return text;
}

}  // namespace zeroplan
