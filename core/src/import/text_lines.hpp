#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace zeroplan {

/// One line of a text file, without its end and without a terminal's colour sequences.
struct TextLine {
    std::size_t number = 1;
    std::string text;
};

/// Lines end with \n or \r\n.
std::vector<TextLine> text_lines(std::string_view text);
/// The parts between spaces and tabs.
std::vector<std::string> words_of(std::string_view line);
/// `line` without the spaces and tabs around it.
std::string_view trimmed(std::string_view line);

}  // namespace zeroplan
