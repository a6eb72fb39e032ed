#include "import/shell_words.hpp"

#include <cctype>

#include "import/text_lines.hpp"

namespace zeroplan {
namespace {

/// An expansion can't make a line much longer than people write them.
constexpr std::size_t longest_value = 4096;

bool is_name(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Words of a command line: spaces part them, quotes hold them together, # starts a comment.
std::vector<std::string> split(std::string_view line) {
    std::vector<std::string> words;
    bool open = false;
    char quote = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (quote == 0 && !open && c == '#') break;
        if (quote == 0 && (c == ' ' || c == '\t' || c == ';' || c == '&' || c == '|')) {
            open = false;
            continue;
        }
        if (!open) words.emplace_back();
        open = true;
        if (c == quote)
            quote = 0;
        else if (quote == 0 && (c == '"' || c == '\''))
            quote = c;
        else if (c == '\\' && quote != '\'' && i + 1 < line.size())
            words.back() += line[++i];
        else
            words.back() += c;
    }
    return words;
}

/// NAME=value at the start of a command, or after export.
bool take_assignment(const std::string& word, std::map<std::string, std::string>& variables) {
    const auto equals = word.find('=');
    if (equals == std::string::npos || equals == 0 || std::isdigit(static_cast<unsigned char>(word[0])) != 0)
        return false;
    for (std::size_t i = 0; i < equals; ++i)
        if (!is_name(word[i])) return false;
    std::string value = word.substr(equals + 1);
    if (value.size() <= longest_value) variables[word.substr(0, equals)] = std::move(value);
    return true;
}

void finish(std::vector<ShellLine>& lines, std::size_t number, std::string_view text,
            std::map<std::string, std::string>& variables) {
    const bool directive = trimmed(text).starts_with("#SBATCH");
    ShellLine line{number, split(directive ? trimmed(text).substr(1) : text)};
    bool at_start = true;
    for (std::string& word : line.words) {
        word = expanded(word, variables);
        at_start = at_start && (word == "export" || take_assignment(word, variables));
    }
    if (!line.words.empty()) lines.push_back(std::move(line));
}

}  // namespace

std::string expanded(std::string_view text, const std::map<std::string, std::string>& variables) {
    std::string result;
    for (std::size_t i = 0; i < text.size() && result.size() <= longest_value; ++i) {
        if (text[i] != '$' || i + 1 == text.size()) {
            result += text[i];
            continue;
        }
        const bool braces = text[i + 1] == '{';
        std::size_t end = i + 1 + (braces ? 1 : 0);
        const std::size_t begin = end;
        while (end < text.size() && is_name(text[end])) ++end;
        const auto found = variables.find(std::string(text.substr(begin, end - begin)));
        const bool closed = !braces || (end < text.size() && text[end] == '}');
        if (found == variables.end() || !closed) {
            result += text[i];
            continue;
        }
        result += found->second;
        i = braces ? end : end - 1;
    }
    return result;
}

std::vector<ShellLine> shell_lines(std::string_view script, std::map<std::string, std::string>& variables) {
    std::vector<ShellLine> lines;
    std::string joined;
    std::size_t first = 1;
    for (const TextLine& line : text_lines(script)) {
        if (joined.empty()) first = line.number;
        const std::string_view text = trimmed(line.text);
        if (text.ends_with('\\')) {
            joined += std::string(text.substr(0, text.size() - 1)) + " ";
            continue;
        }
        joined += text;
        finish(lines, first, joined, variables);
        joined.clear();
    }
    if (!joined.empty()) finish(lines, first, joined, variables);
    return lines;
}

}  // namespace zeroplan
