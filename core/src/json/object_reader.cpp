#include "json/object_reader.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "json/pointer.hpp"
#include "nearest.hpp"
#include "printable.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

[[noreturn]] void throw_wrong_type(const json& value, const ErrorPlace& place, std::string_view name,
                                   std::string_view expected) {
    throw Error(ErrorCode::invalid_input,
                fmt::format("\"{}\" must be {}, but is {}", name, expected, shown(value)), {}, place);
}

[[noreturn]] void throw_out_of_range(const json& value, const ErrorPlace& place, std::string_view name,
                                     const std::string& range) {
    throw Error(ErrorCode::invalid_input,
                fmt::format("\"{}\" must be {}, but is {}", name, range, shown(value)), {}, place);
}

/// The whole number that a JSON number stands for, if it does.
std::optional<std::uint64_t> whole(const json& value) {
    if (value.is_number_unsigned()) return value.get<std::uint64_t>();
    if (value.is_number_integer() && value.get<std::int64_t>() >= 0) return value.get<std::uint64_t>();
    if (!value.is_number_float()) return std::nullopt;
    const double number = value.get<double>();
    // Above 2^53 neighbouring doubles are more than 1 apart: which integer was meant is lost.
    if (!(number >= 0 && number <= static_cast<double>(ObjectReader::largest_integer))) return std::nullopt;
    if (std::trunc(number) != number) return std::nullopt;
    return static_cast<std::uint64_t>(number);
}

std::string integer_range(std::uint64_t least, std::uint64_t most) {
    if (most == ObjectReader::largest_integer) return fmt::format("a whole number of at least {}", least);
    return fmt::format("a whole number from {} to {}", least, most);
}

std::string number_range(double least, double most) {
    if (most == std::numeric_limits<double>::max()) return fmt::format("a number of at least {}", least);
    return fmt::format("a number from {} to {}", least, most);
}

const json& checked_array(const json& value, const ErrorPlace& place, std::string_view name) {
    if (!value.is_array()) throw_wrong_type(value, place, name, "a list");
    return value;
}

ErrorPlace element_place(const ErrorPlace& list, std::size_t index) {
    return {list.file, child_pointer(list.pointer, std::to_string(index))};
}

}  // namespace

std::string shown(const json& value) {
    constexpr std::size_t longest = 60;
    return shortened(value.dump(-1, ' ', false, json::error_handler_t::replace), longest);
}

std::uint64_t read_integer(const json& value, const ErrorPlace& place, std::string_view name,
                           std::uint64_t least, std::uint64_t most) {
    const std::optional<std::uint64_t> number = whole(value);
    if (!number || *number < least || *number > most)
        throw_out_of_range(value, place, name, integer_range(least, most));
    return *number;
}

ObjectReader::ObjectReader(const json& value, ErrorPlace place) : value_(&value), place_(std::move(place)) {
    if (!value.is_object())
        throw Error(ErrorCode::invalid_input,
                    fmt::format("an object {{…}} is expected, but this is {}", shown(value)), {}, place_);
}

void ObjectReader::allow_only(std::span<const std::string_view> keys) const {
    for (const auto& item : value_->items()) {
        if (std::find(keys.begin(), keys.end(), item.key()) != keys.end()) continue;
        fail(item.key(), fmt::format("unknown key \"{}\"", item.key()), nearest_hint(item.key(), keys));
    }
}

void ObjectReader::allow_only(std::initializer_list<std::string_view> keys) const {
    allow_only(std::span(keys.begin(), keys.size()));
}

const json* ObjectReader::find(std::string_view key) const {
    const auto found = value_->find(key);
    return found == value_->end() || found->is_null() ? nullptr : &*found;
}

std::optional<std::uint64_t> ObjectReader::integer(std::string_view key, std::uint64_t least,
                                                   std::uint64_t most) const {
    const json* found = find(key);
    if (found == nullptr) return std::nullopt;
    return read_integer(*found, place(key), key, least, most);
}

std::optional<double> ObjectReader::number(std::string_view key, double least, double most) const {
    const json* found = find(key);
    if (found == nullptr) return std::nullopt;
    if (!found->is_number()) throw_wrong_type(*found, place(key), key, number_range(least, most));
    const auto number = found->get<double>();
    if (!(number >= least && number <= most))
        throw_out_of_range(*found, place(key), key, number_range(least, most));
    return number;
}

std::optional<bool> ObjectReader::boolean(std::string_view key) const {
    const json* found = find(key);
    if (found == nullptr) return std::nullopt;
    if (!found->is_boolean()) throw_wrong_type(*found, place(key), key, "true or false");
    return found->get<bool>();
}

std::optional<std::string> ObjectReader::string(std::string_view key) const {
    const json* found = find(key);
    if (found == nullptr) return std::nullopt;
    if (!found->is_string()) throw_wrong_type(*found, place(key), key, "a string");
    return found->get<std::string>();
}

std::optional<ObjectReader> ObjectReader::object(std::string_view key) const {
    const json* found = find(key);
    if (found == nullptr) return std::nullopt;
    return ObjectReader(*found, place(key));
}

std::optional<std::vector<std::uint64_t>> ObjectReader::integers(std::string_view key, std::uint64_t least,
                                                                 std::uint64_t most) const {
    const json* found = find(key);
    if (found == nullptr) return std::nullopt;
    std::vector<std::uint64_t> result;
    for (const json& element : checked_array(*found, place(key), key))
        result.push_back(read_integer(element, element_place(place(key), result.size()), key, least, most));
    return result;
}

std::optional<std::vector<std::string>> ObjectReader::strings(std::string_view key) const {
    const json* found = find(key);
    if (found == nullptr) return std::nullopt;
    std::vector<std::string> result;
    for (const json& element : checked_array(*found, place(key), key)) {
        if (!element.is_string())
            throw_wrong_type(element, element_place(place(key), result.size()), key, "a list of strings");
        result.push_back(element.get<std::string>());
    }
    return result;
}

ErrorPlace ObjectReader::place(std::string_view key) const {
    return {place_.file, child_pointer(place_.pointer, key)};
}

void ObjectReader::fail(std::string_view key, std::string message, std::string hint) const {
    throw Error(ErrorCode::invalid_input, std::move(message), std::move(hint), place(key));
}

void ObjectReader::fail_unknown_word(std::string_view key, std::string_view word,
                                     std::span<const std::string_view> known) const {
    fail(key, fmt::format("\"{}\" cannot be \"{}\"", key, word), nearest_hint(word, known));
}

}  // namespace zeroplan
