#include "import/text_lines.hpp"

namespace zeroplan {
namespace {

constexpr std::string_view spaces = " \t\r\v\f";

/// ESC [ … letter: nvidia-smi underlines its header.
std::string without_escapes(std::string_view line) {
    std::string plain;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] != '\033') {
            plain += line[i];
            continue;
        }
        while (i + 1 < line.size() && (line[i] < '@' || line[i] > '~' || line[i] == '[')) ++i;
    }
    return plain;
}

}  // namespace

std::vector<TextLine> text_lines(std::string_view text) {
    std::vector<TextLine> lines;
    for (std::size_t number = 1; !text.empty(); ++number) {
        const auto end = text.find('\n');
        std::string_view line = text.substr(0, end);
        if (line.ends_with('\r')) line.remove_suffix(1);
        lines.push_back({number, without_escapes(line)});
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return lines;
}

std::vector<std::string> words_of(std::string_view line) {
    std::vector<std::string> words;
    for (;;) {
        line = trimmed(line);
        if (line.empty()) return words;
        const auto end = line.find_first_of(spaces);
        words.emplace_back(line.substr(0, end));
        line.remove_prefix(words.back().size());
    }
}

std::string_view trimmed(std::string_view line) {
    const auto begin = line.find_first_not_of(spaces);
    if (begin == std::string_view::npos) return {};
    return line.substr(begin, line.find_last_not_of(spaces) - begin + 1);
}

}  // namespace zeroplan
