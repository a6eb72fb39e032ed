#include "nearest.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace zeroplan {
namespace {

std::string normalised(std::string_view word) {
    std::string result;
    for (const char c : word)
        result += c == '-' || c == ' ' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return result;
}

// Long words are the user's own text pasted at the wrong place; comparing them is wasted time.
constexpr std::size_t longest_compared = 64;

template <class Word>
std::optional<std::string> nearest_of(std::string_view word, std::span<const Word> candidates) {
    if (word.size() > longest_compared) return std::nullopt;
    std::size_t best = (word.size() + 2) / 3 + 1;
    std::optional<std::string> found;
    for (const Word& candidate : candidates) {
        const std::size_t distance = edit_distance(word, candidate);
        if (distance >= best) continue;
        best = distance;
        found = std::string(candidate);
    }
    return found;
}

template <class Word>
std::string hint_of(std::string_view word, std::span<const Word> candidates) {
    if (const auto found = nearest_of(word, candidates)) return fmt::format("did you mean \"{}\"?", *found);
    // "h100" for "h100-sxm-80gb": what was meant is among those that start so.
    std::vector<Word> longer;
    for (const Word& candidate : candidates)
        if (!word.empty() && normalised(candidate).starts_with(normalised(word))) longer.push_back(candidate);
    if (longer.size() == 1) return fmt::format("did you mean \"{}\"?", longer.front());
    if (!longer.empty()) return fmt::format("did you mean one of: {}?", fmt::join(longer, ", "));
    return fmt::format("known: {}", fmt::join(candidates, ", "));
}

}  // namespace

std::size_t edit_distance(std::string_view first, std::string_view second) {
    const std::string a = normalised(first), b = normalised(second);
    // Rows i-2, i-1 and i of the table of optimal string alignment.
    std::vector<std::size_t> before(b.size() + 1), previous(b.size() + 1), row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        before = std::exchange(previous, row);
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replace = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            row[j] = std::min({previous[j] + 1, row[j - 1] + 1, replace});
            const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
        }
    }
    return row[b.size()];
}

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
    return nearest_of(word, candidates);
}
std::optional<std::string> nearest(std::string_view word, std::span<const std::string_view> candidates) {
    return nearest_of(word, candidates);
}
std::string nearest_hint(std::string_view word, std::span<const std::string_view> candidates) {
    return hint_of(word, candidates);
}
std::string nearest_hint(std::string_view word, std::span<const std::string> candidates) {
    return hint_of(word, candidates);
}

}  // namespace zeroplan
