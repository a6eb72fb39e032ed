#include "import/deepspeed_section.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "import/deepspeed_keys.hpp"
#include "json/object_reader.hpp"
#include "json/pointer.hpp"
#include "nearest.hpp"
#include "printable.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

/// The number that all of `text` spells.
std::optional<double> spelled_number(const std::string& text) {
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !std::isfinite(number)) return std::nullopt;
    return number;
}

bool only_digits(const std::string& text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// pydantic reads these words as a bool. source: pydantic's conversion table, "str → bool"
std::optional<bool> spelled_flag(std::string text) {
    for (char& c : text)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (text == "true" || text == "yes" || text == "on" || text == "1") return true;
    if (text == "false" || text == "no" || text == "off" || text == "0") return false;
    return std::nullopt;
}

/// Where an unknown key may belong.
std::string way_out(std::string_view key, std::span<const std::string_view> known, bool at_top) {
    const auto top = deepspeed_top_keys();
    if (!at_top && std::find(top.begin(), top.end(), key) != top.end())
        return fmt::format("\"{}\" belongs at the top level of the file", key);
    if (const auto near = nearest(key, known))
        return fmt::format("did you mean \"{}\"? If not, remove it", *near);
    return "remove it";
}

}  // namespace

DeepSpeedSection::DeepSpeedSection(Import& import, const RelaxedJson& document, std::string pointer)
    : import_(&import),
      document_(&document),
      pointer_(std::move(pointer)),
      value_(&document.value.at(json::json_pointer(pointer_))) {}

const json* DeepSpeedSection::find(std::string_view key) const {
    const auto found = value_->find(key);
    return found == value_->end() || found->is_null() ? nullptr : &*found;
}

bool DeepSpeedSection::is_auto(std::string_view key) const {
    const json* found = find(key);
    return found != nullptr && found->is_string() && *found == "auto";
}

std::optional<DeepSpeedSection> DeepSpeedSection::section(std::string_view key) const {
    const json* found = find(key);
    if (found == nullptr) return std::nullopt;
    if (!found->is_object()) fail_type(key, "an object {…}");
    return DeepSpeedSection(*import_, *document_, child_pointer(pointer_, key));
}

std::uint64_t DeepSpeedSection::whole(std::string_view key, double number, std::uint64_t least) const {
    const double down = std::floor(number);
    if (number < static_cast<double>(least) || number > static_cast<double>(ObjectReader::largest_integer))
        fail(key, fmt::format("\"{}\" must be a whole number of at least {}, but is {}", key, least,
                              shown(*find(key))));
    if (down != number)
        note(Finding::rejected, key,
             fmt::format("{} is no whole number: DeepSpeed from 0.15 on refuses it", shown(*find(key))),
             fmt::format("the nearest valid value is {}, taken here",
                         fixed(std::max(down, 1.0 * static_cast<double>(least)), 0)));
    return std::max(static_cast<std::uint64_t>(down), least);
}

std::optional<std::uint64_t> DeepSpeedSection::count(std::string_view key, std::uint64_t least) const {
    const json* found = find(key);
    if (found == nullptr || is_auto(key)) return std::nullopt;
    if (found->is_number_unsigned() && found->get<std::uint64_t>() > ObjectReader::largest_integer)
        return found->get<std::uint64_t>();  // sys.maxsize, written out
    if (found->is_number()) return whole(key, found->get<double>(), least);
    if (!found->is_string()) fail_type(key, "a whole number");
    const std::string text = found->get<std::string>();
    const auto number = spelled_number(text);
    if (!number) fail_type(key, "a whole number");
    const std::uint64_t value = whole(key, *number, least);
    if (!only_digits(text))
        note(Finding::rejected, key,
             fmt::format("\"{}\" is text: DeepSpeed wants a number, without quotation marks", text),
             fmt::format("write {}, taken here", value));
    return value;
}

std::optional<bool> DeepSpeedSection::flag(std::string_view key) const {
    const json* found = find(key);
    if (found == nullptr || is_auto(key)) return std::nullopt;
    if (found->is_boolean()) return found->get<bool>();
    if (found->is_number_integer() && (*found == 0 || *found == 1)) return *found == 1;
    if (found->is_string())
        if (const auto value = spelled_flag(found->get<std::string>())) return value;
    fail_type(key, "true or false");
}

std::optional<std::string> DeepSpeedSection::word(std::string_view key) const {
    const json* found = find(key);
    if (found == nullptr) return std::nullopt;
    if (!found->is_string()) fail_type(key, "a word");
    return found->get<std::string>();
}

std::optional<double> DeepSpeedSection::number(std::string_view key, double least, double most) const {
    const json* found = find(key);
    if (found == nullptr || is_auto(key)) return std::nullopt;
    if (!found->is_number()) fail_type(key, "a number");
    const double value = found->get<double>();
    if (!(value >= least && value <= most))
        fail(key, fmt::format("\"{}\" must be from {} to {}, but is {}", key, least, most, shown(*found)));
    return value;
}

void DeepSpeedSection::forbid_others(std::span<const std::string_view> known) const {
    for (const auto& item : value_->items())
        if (std::find(known.begin(), known.end(), item.key()) == known.end())
            note(Finding::rejected, item.key(),
                 fmt::format(
                     "DeepSpeed knows no \"{}\" here and refuses extra keys (\"extra fields not permitted\")",
                     item.key()),
                 way_out(item.key(), known, pointer_.empty()));
}

std::string DeepSpeedSection::name(std::string_view key) const {
    std::string path = pointer_.empty() ? "" : pointer_.substr(1) + ".";
    std::replace(path.begin(), path.end(), '/', '.');
    return path + std::string(key);
}

std::size_t DeepSpeedSection::line(std::string_view key) const {
    return document_->line_of(child_pointer(pointer_, key));
}

void DeepSpeedSection::note(Finding finding, std::string_view key, std::string message,
                            std::string hint) const {
    zeroplan::note(*import_, finding, name(key), line(key), std::move(message), std::move(hint));
}

void DeepSpeedSection::ask(std::string pointer, std::string_view key, std::string message,
                           std::string hint) const {
    zeroplan::ask(*import_, std::move(pointer), name(key), line(key), std::move(message), std::move(hint));
}

void DeepSpeedSection::state(std::string pointer, std::string json_value, std::string_view key) const {
    zeroplan::state(*import_, std::move(pointer), std::move(json_value), line(key), name(key));
}

void DeepSpeedSection::state_word(std::string pointer, std::string_view word, std::string_view key) const {
    zeroplan::state_word(*import_, std::move(pointer), word, line(key), name(key));
}

void DeepSpeedSection::fail(std::string_view key, std::string message, std::string hint) const {
    fail_at(*import_, line(key), name(key), std::move(message), std::move(hint));
}

void DeepSpeedSection::fail_type(std::string_view key, const char* expected) const {
    fail(key, fmt::format("\"{}\" must be {}, but is {}", key, expected, shown(*find(key))));
}

}  // namespace zeroplan
