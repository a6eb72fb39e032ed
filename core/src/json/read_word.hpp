#pragma once
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "json/object_reader.hpp"
#include "nearest.hpp"
#include "zeroplan/dtype.hpp"
#include "zeroplan/words.hpp"

namespace zeroplan {

/// Throws Error{invalid_input}: "key" cannot be "word", with the nearest known word and all of them.
[[noreturn]] inline void fail_wrong_word(const ObjectReader& object, std::string_view key,
                                         std::string_view word, const std::vector<std::string_view>& known) {
    std::string hint = fmt::format("one of: {}", fmt::join(known, ", "));
    if (const auto near = nearest(word, std::span<const std::string_view>(known)))
        hint = fmt::format("did you mean \"{}\"? {}", *near, hint);
    object.fail(key, fmt::format("\"{}\" cannot be \"{}\"", key, word), hint);
}

/// The enumerator that the word at `key` stands for, if there is one.
template <typename Enum>
std::optional<Enum> read_word(const ObjectReader& object, std::string_view key) {
    const std::optional<std::string> text = object.string(key);
    if (!text) return std::nullopt;
    if (const std::optional<Enum> value = from_word<Enum>(*text)) return value;
    std::vector<std::string_view> known;
    for (const Word<Enum>& word : words<Enum>()) known.push_back(word.text);
    fail_wrong_word(object, key, *text, known);
}

/// Reads the word at `key` into `value`, which keeps its default if there is none.
template <typename Enum>
void read_word_into(Enum& value, const ObjectReader& object, std::string_view key) {
    value = read_word<Enum>(object, key).value_or(value);
}

}  // namespace zeroplan
