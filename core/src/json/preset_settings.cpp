#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "embedded_files.hpp"
#include "json/settings.hpp"
#include "nearest.hpp"
#include "zeroplan/io.hpp"

namespace zeroplan {
namespace {

/// Preset of that name, else an absolute path; `hint` says where the names are listed.
struct NameOrPath {
    std::span<const embedded::File> presets;
    const char* what;
    const char* list;
};

bool is_preset(const NameOrPath& kind, const std::string& name) {
    for (const embedded::File& file : kind.presets)
        if (file.name == name) return true;
    return false;
}

std::string existing_path(const NameOrPath& kind, const std::string& path, const std::string& origin) {
    std::error_code ignored;
    if (!path.empty() && std::filesystem::exists(path, ignored)) return absolute_path(path, origin);
    std::vector<std::string_view> names;
    for (const embedded::File& file : kind.presets) names.push_back(file.name);
    const auto near = nearest(path, std::span<const std::string_view>(names));
    throw Error(ErrorCode::not_found,
                fmt::format("there is neither a {} preset nor a file \"{}\"", kind.what, path),
                near ? fmt::format("did you mean {}? zeroplan list {} shows all", *near, kind.list)
                     : fmt::format("zeroplan list {} shows the presets", kind.list),
                place_of(origin));
}

}  // namespace

Setting model_setting(const std::string& name_or_path, const std::string& origin) {
    const NameOrPath kind{embedded::models(), "model", "models"};
    const bool preset = is_preset(kind, name_or_path);
    // What may throw comes before the list: GCC 12 destroys elements of one that were never made.
    const std::string value = preset ? name_or_path : existing_path(kind, name_or_path, origin);
    const nlohmann::json model{{preset ? "preset" : "file", value}};
    return {"/model", model.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), origin};
}

Setting topology_setting(const std::string& name_or_path, const std::string& origin) {
    const NameOrPath kind{embedded::topologies(), "topology", "topologies"};
    const std::string value =
        is_preset(kind, name_or_path) ? name_or_path : existing_path(kind, name_or_path, origin);
    return word_setting("/cluster/topology", value, origin);
}

Setting calibration_setting(const std::string& paths, const std::string& origin) {
    nlohmann::json list = nlohmann::json::array();
    for (std::size_t begin = 0; begin <= paths.size();) {
        const std::size_t end = std::min(paths.find(',', begin), paths.size());
        const std::string path = paths.substr(begin, end - begin);
        std::error_code ignored;
        if (path.empty() || !std::filesystem::exists(path, ignored))
            throw Error(ErrorCode::not_found, fmt::format("there is no calibration file \"{}\"", path),
                        "zeroplan import LOG --output FILE makes one", place_of(origin));
        list.push_back(absolute_path(path, origin));
        begin = end + 1;
    }
    return {"/cluster/calibration", list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
            origin};
}

}  // namespace zeroplan
