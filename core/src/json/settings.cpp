#include "json/settings.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "json/object_reader.hpp"
#include "json/parse.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

[[noreturn]] void fail(const Setting& setting, std::string message, std::string hint = {}) {
    throw Error(ErrorCode::invalid_input, std::move(message), std::move(hint), place_of(setting.origin));
}

std::string unescaped(std::string_view token, const Setting& setting) {
    std::string key;
    for (std::size_t i = 0; i < token.size(); ++i) {
        if (token[i] != '~') {
            key += token[i];
            continue;
        }
        if (++i == token.size() || (token[i] != '0' && token[i] != '1'))
            fail(setting,
                 fmt::format("\"{}\" is no JSON pointer: \"~\" stands only in ~0 (for ~) and ~1 (for /)",
                             setting.pointer),
                 "as in --set /training/micro_batch_size=4");
        key += token[i] == '0' ? '~' : '/';
    }
    return key;
}

std::vector<std::string> tokens(const Setting& setting) {
    std::string_view rest = setting.pointer;
    if (rest.empty() || rest.front() != '/')
        fail(setting, fmt::format("\"{}\" is no JSON pointer: it must start with /", setting.pointer),
             "as in --set /training/micro_batch_size=4");
    std::vector<std::string> keys;
    while (!rest.empty()) {
        rest.remove_prefix(1);
        const auto end = std::min(rest.find('/'), rest.size());
        keys.push_back(unescaped(rest.substr(0, end), setting));
        rest.remove_prefix(end);
    }
    return keys;
}

json& element(json& array, const std::string& token, const Setting& setting) {
    std::size_t index = array.size();
    if (token != "-") {
        const char* end = token.data() + token.size();
        const auto parsed = std::from_chars(token.data(), end, index);
        const bool leading_zero = token.size() > 1 && token.front() == '0';
        if (parsed.ec != std::errc{} || parsed.ptr != end || leading_zero || index > array.size())
            fail(setting,
                 fmt::format("\"{}\" of \"{}\" is no index into a list of {}", token, setting.pointer,
                             array.size()),
                 array.empty()
                     ? "use 0 to add the first"
                     : fmt::format("use 0 to {}, or {} to add one", array.size() - 1, array.size()));
    }
    if (index == array.size()) array.push_back(nullptr);
    return array[index];
}

/// What `value`, which stands at `parent`, says at `pointer`; nothing if it leaves that open.
std::optional<json> said_at(const json& value, const std::string& parent, const std::string& pointer) {
    try {
        const json::json_pointer below(pointer.substr(parent.size()));
        if (value.contains(below)) return value.at(below);
    } catch (const json::exception&) {
        // A wrong index or escape: apply_setting() says so.
    }
    return std::nullopt;
}

std::optional<Contradiction> contradiction(const Setting& first, const Setting& second) {
    const bool replaces = is_prefix(second.pointer, first.pointer);
    if (!replaces && !is_prefix(first.pointer, second.pointer)) return std::nullopt;
    const std::string& pointer = replaces ? first.pointer : second.pointer;
    const auto before = said_at(parse_json(first.json_value, first.origin), first.pointer, pointer);
    const auto after = said_at(parse_json(second.json_value, second.origin), second.pointer, pointer);
    if (!before || before == after) return std::nullopt;
    return Contradiction{first, second, pointer, shown(*before), after ? shown(*after) : ""};
}

}  // namespace

std::optional<Contradiction> find_contradiction(std::span<const Setting> settings) {
    for (std::size_t second = 1; second < settings.size(); ++second)
        for (std::size_t first = 0; first < second; ++first)
            if (auto found = contradiction(settings[first], settings[second])) return found;
    return std::nullopt;
}

bool is_prefix(const std::string& parent, const std::string& pointer) {
    return pointer.starts_with(parent) && (pointer.size() == parent.size() || pointer[parent.size()] == '/');
}

ErrorPlace place_of(const std::string& origin) {
    return origin.starts_with("--") ? ErrorPlace{"command line", origin} : ErrorPlace{"", origin};
}

std::string absolute_path(const std::string& path, const std::string& origin) {
    std::error_code error;
    const std::filesystem::path whole = std::filesystem::absolute(path, error);
    if (error)
        throw Error(ErrorCode::not_found,
                    fmt::format("\"{}\" can't be found: the folder that relative paths start in is gone ({})",
                                path, error.message()),
                    "go to a folder that exists, or give the whole path", place_of(origin));
    return whole.lexically_normal().string();
}

void apply_setting(json& document, const Setting& setting) {
    json* at = &document;
    std::string done;
    for (const std::string& token : tokens(setting)) {
        if (at->is_null()) *at = json::object();
        if (!at->is_object() && !at->is_array())
            fail(setting,
                 fmt::format("\"{}\" leads into {}, which is {} and has no keys", setting.pointer, done,
                             shown(*at)),
                 fmt::format("set {} as a whole", done));
        at = at->is_array() ? &element(*at, token, setting) : &(*at)[token];
        done += "/" + token;
    }
    *at = parse_json(setting.json_value, setting.origin);
}

Error blame_setting(const Error& error, const std::string& document, std::span<const Setting> settings) {
    if (error.place().file != document) return error;
    const std::string& pointer = error.place().pointer;
    const auto guilty = std::find_if(settings.rbegin(), settings.rend(), [&](const Setting& setting) {
        return is_prefix(setting.pointer, pointer);
    });
    if (guilty == settings.rend()) return error;
    ErrorPlace place = place_of(guilty->origin);
    place.pointer += pointer.substr(guilty->pointer.size());
    return {error.code(), error.message(), error.hint(), place};
}

Setting text_setting(std::string pointer, std::string_view text, std::string origin) {
    if (json::accept(text)) return {std::move(pointer), std::string(text), std::move(origin)};
    return word_setting(std::move(pointer), text, std::move(origin));
}

Setting word_setting(std::string pointer, std::string_view word, std::string origin) {
    std::string quoted = json(word).dump(-1, ' ', false, json::error_handler_t::replace);
    return {std::move(pointer), std::move(quoted), std::move(origin)};
}

Setting parse_setting(std::string_view pointer_and_value, std::string origin) {
    const auto equals = pointer_and_value.find('=');
    if (equals == std::string_view::npos || !pointer_and_value.starts_with('/'))
        throw Error(ErrorCode::invalid_input, fmt::format("\"{}\" is not /pointer=value", pointer_and_value),
                    "as in --set /training/micro_batch_size=4", place_of(origin));
    std::string pointer(pointer_and_value.substr(0, equals));
    std::string where = origin + " " + pointer;
    return text_setting(std::move(pointer), pointer_and_value.substr(equals + 1), std::move(where));
}

}  // namespace zeroplan
