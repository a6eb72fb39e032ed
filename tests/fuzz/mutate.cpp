#include "fuzz/mutate.hpp"

#include <cctype>
#include <random>
#include <vector>

namespace zeroplan::fuzz {
namespace {

enum class Kind { word, space, mark };

Kind kind_of(char c) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '_' || c == '.' || c == '-') return Kind::word;
    return std::isspace(byte) != 0 ? Kind::space : Kind::mark;
}

/// Marks stand alone; words and spaces hold together.
std::vector<std::string> tokens_of(std::string_view text) {
    std::vector<std::string> tokens;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool joins =
            i > 0 && kind_of(text[i]) != Kind::mark && kind_of(text[i]) == kind_of(text[i - 1]);
        if (!joins) tokens.emplace_back();
        tokens.back() += text[i];
    }
    return tokens;
}

}  // namespace

std::string mutate_tokens(std::string_view text, std::span<const std::string_view> words,
                          std::uint32_t seed) {
    std::minstd_rand random(seed);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
    std::vector<std::string> tokens = tokens_of(text);
    if (tokens.empty()) tokens.emplace_back();
    const std::size_t at = below(tokens.size());
    const auto position = [&](std::size_t i) { return tokens.begin() + static_cast<std::ptrdiff_t>(i); };
    switch (below(5)) {
        case 0:
            tokens[at] = words[below(words.size())];
            break;
        case 1:
            tokens.insert(position(at), std::string(words[below(words.size())]));
            break;
        case 2:
            tokens.erase(position(at), position(at + 1 + below(tokens.size() - at)));
            break;
        case 3:
            std::swap(tokens[at], tokens[below(tokens.size())]);
            break;
        default: {
            // A whole run of tokens again, elsewhere: nested objects, rows, lines.
            const std::vector<std::string> run(position(at), position(at + 1 + below(tokens.size() - at)));
            tokens.insert(position(below(tokens.size())), run.begin(), run.end());
        }
    }
    std::string result;
    for (const std::string& token : tokens) result += token;
    return result;
}

}  // namespace zeroplan::fuzz
