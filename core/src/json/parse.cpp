#include "json/parse.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "json/pointer.hpp"
#include "zeroplan/error.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

struct TextPosition {
    std::size_t line = 1, column = 1;
};

TextPosition position_of(std::string_view text, std::size_t offset) {
    const std::string_view before = text.substr(0, std::min(offset, text.size()));
    const auto newline = before.rfind('\n');
    TextPosition position;
    position.line += static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
    position.column += newline == std::string_view::npos ? before.size() : before.size() - newline - 1;
    return position;
}

/// The word (letters, digits, sign) of which the character at `offset` is part; "" if there is none.
std::string_view word_at(std::string_view text, std::size_t offset) {
    const auto in_word = [&](std::size_t i) {
        return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) != 0 || text[i] == '-' ||
                                   text[i] == '+' || text[i] == '.' || text[i] == '_');
    };
    if (!in_word(offset)) return {};
    std::size_t begin = offset, end = offset;
    while (begin > 0 && in_word(begin - 1)) --begin;
    while (in_word(end)) ++end;
    return text.substr(begin, std::min<std::size_t>(end - begin, 40));
}

[[noreturn]] void throw_syntax_error(std::string_view text, const std::string& file, std::size_t offset) {
    const auto at_end = text.find_last_not_of(" \t\r\n");
    const bool truncated = at_end == std::string_view::npos || offset > at_end;
    const TextPosition at = position_of(text, truncated ? text.size() : offset);
    std::string message, hint;
    const std::string_view word = truncated ? std::string_view{} : word_at(text, offset);
    if (truncated && at_end == std::string_view::npos) {
        message = "the text is empty, JSON expected";
    } else if (truncated) {
        message = "the JSON text ends too early";
        hint = "the file may have been cut off while it was copied or downloaded";
    } else if (word.find("Inf") != std::string_view::npos || word.find("NaN") != std::string_view::npos) {
        message = fmt::format("{} is not a JSON number", word);
        hint = "Python writes it, JSON has no such value: remove the key or put null";
    } else if (!word.empty()) {
        message = fmt::format("not JSON at \"{}\"", word);
        hint = "strict JSON: no comments, no trailing commas, double quotes around keys and strings";
    } else if (static_cast<unsigned char>(text[offset]) < 0x20 ||
               static_cast<unsigned char>(text[offset]) > 0x7e) {
        message = fmt::format("not JSON at byte 0x{:02x}", static_cast<unsigned char>(text[offset]));
        hint = "is this a text file in UTF-8?";
    } else {
        message = fmt::format("not JSON at '{}'", text[offset]);
        hint = "strict JSON: no comments, no trailing commas, double quotes around keys and strings";
    }
    throw Error(ErrorCode::invalid_input, message, hint,
                {file, fmt::format("line {}, column {}", at.line, at.column)});
}

/// Builds the value, keeping the path to where it is, which duplicate keys and depth are reported with.
class Builder : public nlohmann::json_sax<json> {
public:
    Builder(std::string_view text, const std::string& file) : text_(text), file_(file) {}
    json take() { return std::move(root_); }

    bool null() override { return put(nullptr); }
    bool boolean(bool value) override { return put(value); }
    bool number_integer(number_integer_t value) override { return put(value); }
    bool number_unsigned(number_unsigned_t value) override { return put(value); }
    bool number_float(number_float_t value, const string_t&) override { return put(value); }
    bool string(string_t& value) override { return put(std::move(value)); }
    bool binary(binary_t&) override { return false; }

    bool start_object(std::size_t) override { return open(json::object()); }
    bool end_object() override { return close(); }
    bool start_array(std::size_t) override { return open(json::array()); }
    bool end_array() override { return close(); }

    bool key(string_t& name) override {
        if (open_.back()->contains(name))
            throw Error(ErrorCode::invalid_input, fmt::format("key \"{}\" is given twice", name),
                        "keep one of the two", {file_, path(name)});
        key_ = std::move(name);
        return true;
    }
    bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
        throw_syntax_error(text_, file_, position == 0 ? 0 : position - 1);
    }

private:
    json* add(json value) {
        if (open_.empty()) {
            root_ = std::move(value);
            return &root_;
        }
        json& parent = *open_.back();
        if (parent.is_array()) {
            parent.push_back(std::move(value));
            return &parent.back();
        }
        return &(parent[key_] = std::move(value));
    }
    bool put(json value) {
        add(std::move(value));
        return true;
    }
    bool open(json value) {
        if (open_.size() == deepest_json)
            throw Error(ErrorCode::invalid_input,
                        fmt::format("nested deeper than {} objects or arrays", deepest_json),
                        "no file that is read here is: is it the right one?", {file_, path({})});
        keys_.push_back(open_.empty()              ? std::string{}
                        : open_.back()->is_array() ? std::to_string(open_.back()->size())
                                                   : key_);
        open_.push_back(add(std::move(value)));
        return true;
    }
    bool close() {
        open_.pop_back();
        keys_.pop_back();
        return true;
    }
    std::string path(const std::string& last) const {
        std::string result;
        for (std::size_t i = 1; i < keys_.size(); ++i) result = child_pointer(result, keys_[i]);
        return last.empty() ? result : child_pointer(result, last);
    }

    std::string_view text_;
    const std::string& file_;
    json root_;
    std::vector<json*> open_;        // the objects and arrays around the next value; a parent's storage stays
    std::vector<std::string> keys_;  // what each of them is called in its parent
    std::string key_;
};

}  // namespace

json parse_json(std::string_view text, const std::string& file) {
    // The parser would take it for the end, and whatever follows for nothing.
    if (const auto nul = text.find('\0'); nul != std::string_view::npos) throw_syntax_error(text, file, nul);
    Builder builder(text, file);
    json::sax_parse(text, &builder);
    return builder.take();
}

}  // namespace zeroplan
