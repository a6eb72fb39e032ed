#include "json/fabric_json.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "zeroplan/what_if_io.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::uint64_t most_nodes = 1'000'000;
constexpr double most_oversubscription = 1e6, largest_rate = 1e15;
constexpr std::size_t most_dimensions = 6;  // as many as Fujitsu's Tofu has

LeafSwitches read_leaf_switches(const ObjectReader& reader) {
    reader.allow_only({"nodes", "oversubscription"});
    const auto nodes = reader.integer("nodes", 1, most_nodes);
    const auto ratio = reader.number("oversubscription", 1, most_oversubscription);
    if (!nodes) reader.fail("nodes", "\"nodes\" of a leaf switch is missing", "as in --leaf-switches 4:2");
    if (!ratio)
        reader.fail("oversubscription", "\"oversubscription\" is missing",
                    "2: the links up have half of the bandwidth of the NICs below");
    return {*nodes, *ratio};
}

double read_ratio(const ObjectReader& reader, std::string_view key) {
    const auto ratio = reader.number(key, 1, most_oversubscription);
    if (!ratio)
        reader.fail(key, fmt::format("\"{}\" is missing", key),
                    "2: the links up have half of the bandwidth of what is below; 1: nothing blocks");
    return *ratio;
}

std::uint64_t read_count(const ObjectReader& reader, std::string_view key) {
    const auto count = reader.integer(key, 1, most_nodes);
    if (!count) reader.fail(key, fmt::format("\"{}\" is missing", key), "as 4 in --fabric fat-tree:4:2");
    return *count;
}

void read_tree(const ObjectReader& reader, FabricSpec& fabric) {
    fabric.nodes_per_leaf = read_count(reader, "nodes_per_leaf");
    fabric.leaf_oversubscription = read_ratio(reader, "leaf_oversubscription");
    if (!reader.has("leaves_per_pod") && !reader.has("pod_oversubscription")) return;
    fabric.leaves_per_pod = read_count(reader, "leaves_per_pod");
    fabric.pod_oversubscription = read_ratio(reader, "pod_oversubscription");
}

void read_torus(const ObjectReader& reader, FabricSpec& fabric) {
    const auto dimensions = reader.integers("dimensions", 1, most_nodes);
    if (!dimensions || dimensions->empty() || dimensions->size() > most_dimensions)
        reader.fail("dimensions",
                    dimensions ? fmt::format("a torus has 1 to {} dimensions, but {} are given",
                                             most_dimensions, dimensions->size())
                               : "\"dimensions\" of a torus are missing",
                    "nodes in each, as in --fabric torus:4x4x2");
    fabric.dimensions = *dimensions;
    double nodes = 1;
    for (const std::uint64_t size : *dimensions) nodes *= static_cast<double>(size);
    if (nodes > static_cast<double>(most_nodes))
        reader.fail("dimensions",
                    fmt::format("a torus of {:.0f} nodes is larger than the {} that can be planned", nodes,
                                most_nodes),
                    "give smaller dimensions");
    fabric.link_bytes_per_s = reader.number("link_bytes_per_second", 1, largest_rate).value_or(0);
}

FabricSpec read_spec(const ObjectReader& reader) {
    const auto word = reader.string("kind");
    if (!word) reader.fail("kind", "\"kind\" of the fabric is missing", "as in --fabric torus:4x4x2");
    const auto found = std::find(fabric_kind_words.begin(), fabric_kind_words.end(), *word);
    if (found == fabric_kind_words.end()) reader.fail_unknown_word("kind", *word, fabric_kind_words);
    FabricSpec fabric;
    fabric.kind = static_cast<FabricKind>(found - fabric_kind_words.begin());
    switch (fabric.kind) {
        case FabricKind::single_switch:
            reader.allow_only({"kind"});
            break;
        case FabricKind::rail_optimised:
            reader.allow_only({"kind", "nodes_per_leaf", "leaf_oversubscription"});
            read_tree(reader, fabric);
            break;
        case FabricKind::fat_tree:
            reader.allow_only({"kind", "nodes_per_leaf", "leaf_oversubscription", "leaves_per_pod",
                               "pod_oversubscription"});
            read_tree(reader, fabric);
            break;
        case FabricKind::torus:
            reader.allow_only({"kind", "dimensions", "link_bytes_per_second"});
            read_torus(reader, fabric);
            break;
    }
    return fabric;
}

ordered_json to_json(const FabricSpec& fabric) {
    ordered_json out = {{"kind", to_string(fabric.kind)}};
    if (fabric.kind == FabricKind::torus) {
        out["dimensions"] = fabric.dimensions;
        if (fabric.link_bytes_per_s > 0) out["link_bytes_per_second"] = fabric.link_bytes_per_s;
    } else if (fabric.kind != FabricKind::single_switch) {
        out["nodes_per_leaf"] = fabric.nodes_per_leaf;
        out["leaf_oversubscription"] = fabric.leaf_oversubscription;
    }
    if (fabric.leaves_per_pod == 0) return out;
    out["leaves_per_pod"] = fabric.leaves_per_pod;
    out["pod_oversubscription"] = fabric.pod_oversubscription;
    return out;
}

/// A number, or the text for the reader to refuse.
json number_or_text(const std::string& text) {
    return json::accept(text) ? json::parse(text) : json(text);
}

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find(separator, at), text.size());
        parts.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return parts;
}

json numbers(const std::string& text) {
    json list = json::array();
    for (const std::string& part : split(text, 'x')) list.push_back(number_or_text(part));
    return list;
}

/// What the parts of a flag behind its kind are, in order.
std::vector<const char*> keys_behind(const std::string& kind) {
    if (kind == "torus") return {"dimensions", "link_bytes_per_second"};
    if (kind == "rail_optimised") return {"nodes_per_leaf", "leaf_oversubscription"};
    if (kind == "fat_tree")
        return {"nodes_per_leaf", "leaf_oversubscription", "leaves_per_pod", "pod_oversubscription"};
    return {};
}

}  // namespace

void read_fabric(const ObjectReader& what_if, WhatIf& result) {
    if (const auto switches = what_if.object("leaf_switches"))
        result.leaf_switches = read_leaf_switches(*switches);
    const auto fabric = what_if.object("fabric");
    if (!fabric) return;
    if (result.leaf_switches)
        what_if.fail("fabric", "the nodes are joined both by \"leaf_switches\" and by a \"fabric\"",
                     "leave one out: --leaf-switches 4:2 is --fabric fat-tree:4:2");
    result.fabric = read_spec(*fabric);
}

void write_fabric(const WhatIf& what_if, ordered_json& out) {
    if (what_if.leaf_switches)
        out["leaf_switches"] = {{"nodes", what_if.leaf_switches->nodes},
                                {"oversubscription", what_if.leaf_switches->oversubscription}};
    if (what_if.fabric) out["fabric"] = to_json(*what_if.fabric);
}

Setting leaf_switches_setting(const std::string& text, const std::string& origin) {
    const auto colon = std::min(text.find(':'), text.size());
    json value = {{"nodes", nullptr}, {"oversubscription", nullptr}};
    value["nodes"] = number_or_text(text.substr(0, colon));
    if (colon < text.size()) value["oversubscription"] = number_or_text(text.substr(colon + 1));
    return {"/what_if/leaf_switches", value.dump(-1, ' ', false, json::error_handler_t::replace), origin};
}

Setting fabric_setting(const std::string& text, const std::string& origin) {
    const std::vector<std::string> parts = split(text, ':');
    std::string kind = parts.front();
    std::replace(kind.begin(), kind.end(), '-', '_');
    const std::vector<const char*> keys = keys_behind(kind);
    json value = {{"kind", kind}};
    for (std::size_t i = 1; i < parts.size() && i <= keys.size(); ++i)
        value[keys[i - 1]] = kind == "torus" && i == 1 ? numbers(parts[i]) : number_or_text(parts[i]);
    const bool known =
        std::find(fabric_kind_words.begin(), fabric_kind_words.end(), kind) != fabric_kind_words.end();
    if (known && parts.size() > keys.size() + 1)
        throw Error(ErrorCode::invalid_input,
                    fmt::format("\"{}\" has {} parts behind its kind, but a {} has at most {}", text,
                                parts.size() - 1, parts.front(), keys.size()),
                    fmt::format("as in {} fat-tree:4:2 or {} torus:4x4x2", origin, origin),
                    {"command line", origin});
    return {"/what_if/fabric", value.dump(-1, ' ', false, json::error_handler_t::replace), origin};
}

}  // namespace zeroplan
