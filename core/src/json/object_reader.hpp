#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "zeroplan/error.hpp"
#include "zeroplan/words.hpp"

namespace zeroplan {

/// Reads one JSON object strictly. Every getter returns nothing for a key that is absent or null, and throws
/// Error{invalid_input} with the key's JSON pointer, the value found and what was expected otherwise.
/// Holds a reference to the object: the object must outlive the reader.
class ObjectReader {
public:
    static constexpr std::uint64_t largest_integer = 1ULL << 53;

    /// `place` is where the object itself stands. Throws if `value` is no object.
    ObjectReader(const nlohmann::json& value, ErrorPlace place);

    /// Throws for the first key that is not in `keys`, with the nearest known key in the hint.
    void allow_only(std::span<const std::string_view> keys) const;
    void allow_only(std::initializer_list<std::string_view> keys) const;

    bool has(std::string_view key) const { return find(key) != nullptr; }
    /// The value, or nullptr if it is absent or null.
    const nlohmann::json* find(std::string_view key) const;

    /// A whole number in [least, most]; 5e8 and 64.0 are whole numbers. Refuses negative ones, fractions and
    /// what a double cannot count (above 2^53) unless written out as an integer.
    std::optional<std::uint64_t> integer(std::string_view key, std::uint64_t least = 0,
                                         std::uint64_t most = largest_integer) const;
    /// A finite number in [least, most].
    std::optional<double> number(std::string_view key, double least = 0,
                                 double most = std::numeric_limits<double>::max()) const;
    std::optional<bool> boolean(std::string_view key) const;
    std::optional<std::string> string(std::string_view key) const;
    std::optional<ObjectReader> object(std::string_view key) const;
    /// The elements of an array of whole numbers or of strings.
    std::optional<std::vector<std::uint64_t>> integers(std::string_view key, std::uint64_t least = 0,
                                                       std::uint64_t most = largest_integer) const;
    std::optional<std::vector<std::string>> strings(std::string_view key) const;

    /// The enumerator that the word at `key` stands for (words.hpp).
    template <class Enum>
    std::optional<Enum> word(std::string_view key) const {
        const std::optional<std::string> found = string(key);
        if (!found) return std::nullopt;
        if (const std::optional<Enum> value = from_word<Enum>(*found)) return value;
        std::vector<std::string_view> known;
        for (const Word<Enum>& known_word : words<Enum>()) known.push_back(known_word.text);
        fail_unknown_word(key, *found, known);
    }

    /// Where the value of `key` stands.
    ErrorPlace place(std::string_view key) const;
    const ErrorPlace& place() const { return place_; }
    const nlohmann::json& value() const { return *value_; }

    /// Throws Error{invalid_input} at `key`.
    [[noreturn]] void fail(std::string_view key, std::string message, std::string hint = {}) const;
    [[noreturn]] void fail_unknown_word(std::string_view key, std::string_view word,
                                        std::span<const std::string_view> known) const;

private:
    const nlohmann::json* value_;
    ErrorPlace place_;
};

/// `value` as a whole number in [least, most], as ObjectReader::integer; `place` is where it stands, `name`
/// what it is called in the message.
std::uint64_t read_integer(const nlohmann::json& value, const ErrorPlace& place, std::string_view name,
                           std::uint64_t least, std::uint64_t most);
/// A value as an error message shows it: JSON text, cut after 60 characters.
std::string shown(const nlohmann::json& value);

}  // namespace zeroplan
