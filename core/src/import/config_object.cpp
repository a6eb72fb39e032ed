#include "import/config_object.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace zeroplan {
namespace {

std::string_view only_name_in(const ObjectReader& object, const KeyNames& names) {
    std::string_view found;
    for (const std::string_view name : names) {
        if (!object.has(name)) continue;
        if (!found.empty() && *object.find(found) != *object.find(name))
            object.fail(name,
                        fmt::format("\"{}\" is {}, but \"{}\", another name of it, is {}", name,
                                    shown(*object.find(name)), found, shown(*object.find(found))),
                        "keep one of the two");
        if (found.empty()) found = name;
    }
    return found;
}

}  // namespace

std::string_view ConfigObject::given_as(const KeyNames& names) const {
    if (overrides_) {
        const std::string_view name = only_name_in(*overrides_, names);
        if (!name.empty()) return name;
    }
    return only_name_in(config_, names);
}

const ObjectReader& ConfigObject::holder(std::string_view key) const {
    return overrides_ && overrides_->has(key) ? *overrides_ : config_;
}

bool ConfigObject::has(std::string_view key) const {
    return holder(key).has(key);
}

std::optional<std::uint64_t> ConfigObject::size(const KeyNames& names, std::uint64_t most) const {
    const std::string_view name = given_as(names);
    if (name.empty()) return std::nullopt;
    return holder(name).integer(name, 1, most);
}

std::optional<bool> ConfigObject::boolean(std::string_view key) const {
    return holder(key).boolean(key);
}

std::optional<std::string> ConfigObject::string(const KeyNames& names) const {
    const std::string_view name = given_as(names);
    if (name.empty()) return std::nullopt;
    return holder(name).string(name);
}

void ConfigObject::fail(const KeyNames& names, std::string message, std::string hint, ErrorCode code) const {
    const std::string_view name = given_as(names);
    throw Error(code, std::move(message), std::move(hint),
                name.empty() ? config_.place() : holder(name).place(name));
}

}  // namespace zeroplan
