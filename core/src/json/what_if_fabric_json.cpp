#include "json/what_if_fabric_json.hpp"

#include <array>
#include <charconv>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "json/fabric_json.hpp"
#include "json/settings.hpp"
#include "nearest.hpp"
#include "zeroplan/fabric_sites.hpp"
#include "zeroplan/io.hpp"
#include "zeroplan/what_if_io.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::uint64_t most_nodes = 1'000'000;
constexpr std::array<std::string_view, 2> placement_words{"packed", "spread"};  ///< by PlacementKind

/// "packed", "spread" or a list of nodes of the fabric, one for each of `nodes` nodes of a job.
Placement read_placement(const ObjectReader& reader, std::uint64_t nodes) {
    const json& value = *reader.find("placement");
    if (value.is_string()) {
        const auto word = value.get<std::string>();
        for (std::size_t i = 0; i < placement_words.size(); ++i)
            if (placement_words[i] == word) return {static_cast<PlacementKind>(i), {}};
        reader.fail("placement", fmt::format("a job can't be placed \"{}\"", word),
                    nearest_hint(word, placement_words) + ", or nodes as 0-3,8");
    }
    Placement placement{PlacementKind::list, *reader.integers("placement", 0, most_nodes)};
    if (placement.nodes.size() != nodes)
        reader.fail("placement",
                    fmt::format("{} nodes are listed, but the job has {}", placement.nodes.size(), nodes));
    if (std::set<std::uint64_t>(placement.nodes.begin(), placement.nodes.end()).size() != nodes)
        reader.fail("placement", "a node is listed twice");
    return placement;
}

Scenario resolve_background(const ObjectReader& reader) {
    ScenarioRequest request;
    if (reader.has("file") && reader.has("scenario"))
        reader.fail("scenario", "the job in the background has both \"file\" and \"scenario\"",
                    "keep one of the two");
    if (const auto file = reader.string("file")) {
        if (file->empty()) reader.fail("file", "the file of the job in the background has no name");
        namespace fs = std::filesystem;
        request.file = (fs::path(reader.place().file).parent_path() / *file).string();
    } else if (const json* scenario = reader.find("scenario")) {
        request.text = scenario->dump();
    } else {
        reader.fail("file", "the job in the background has neither \"file\" nor \"scenario\"",
                    "name a scenario file, as in --background other.json");
    }
    // Before it is resolved: jobs behind jobs would never end.
    const json merged = json::parse(merged_scenario_json(request));
    if (const auto own = merged.find("what_if"); own != merged.end() && !own->empty())
        throw Error(ErrorCode::invalid_input, "the job in the background has a what_if of its own",
                    "leave it out: links and ranks are those of the scenario that it is in the background of",
                    request.file.empty() ? reader.place("scenario") : ErrorPlace{request.file, "/what_if"});
    return resolve_scenario(request);
}

void check_switches(const ObjectReader& reader, const char* key, const WhatIf& what_if,
                    const ClusterSpec& cluster) {
    if (fabric_of(what_if).kind == FabricKind::torus && cluster.inter_node.sharp)
        reader.fail(key,
                    "a torus has no switches, but cluster.inter_node.sharp says that the network's reduce",
                    "set /cluster/inter_node/sharp to false, or take another fabric");
}

BackgroundJob read_background(const ObjectReader& reader, const WhatIf& what_if, std::uint64_t& nodes) {
    reader.allow_only({"file", "scenario", "name", "placement"});
    const Scenario scenario = resolve_background(reader);
    check_switches(reader, reader.has("file") ? "file" : "scenario", what_if, scenario.cluster);
    nodes = nodes_in_use(scenario.cluster);
    BackgroundJob job;
    job.name = reader.string("name").value_or(
        fmt::format("{} on {} GPUs", scenario.model.name, scenario.cluster.gpus_used));
    job.scenario_json = scenario_json(scenario, -1);
    if (reader.has("placement")) job.placement = read_placement(reader, nodes);
    return job;
}

/// A torus has just the nodes it says; a job alone in it, placed by nobody, is meant to fill it.
void check_size(const ObjectReader& reader, const WhatIf& what_if, std::uint64_t nodes,
                std::uint64_t other_nodes) {
    const FabricSpec fabric = fabric_of(what_if);
    if (fabric.kind != FabricKind::torus) return;
    const std::uint64_t size = torus_nodes(fabric);
    const std::string torus =
        fmt::format("a torus of {} has {} nodes", fmt::join(fabric.dimensions, " × "), size);
    const bool fills = !reader.has("placement") && !what_if.background;
    if (fills ? size != nodes : size < nodes + other_nodes)
        reader.fail(
            "fabric",
            fills ? fmt::format("{}, but the job has {}", torus, nodes)
                  : fmt::format("{}, but the jobs need {}", torus, nodes + other_nodes),
            fills ? "give dimensions whose product is the number of nodes, or say with --placement which "
                    "nodes of a larger torus the job has"
                  : "give larger dimensions");
    for (const auto* placement :
         {&what_if.placement,
          what_if.background && what_if.background->placement ? &*what_if.background->placement : nullptr})
        for (const std::uint64_t node : placement ? placement->nodes : std::vector<std::uint64_t>{})
            if (node >= size)
                reader.fail("placement", fmt::format("there is no node {}: {}", node, torus),
                            fmt::format("its nodes are 0 to {}", size - 1));
}

ordered_json to_json(const Placement& placement) {
    if (placement.kind == PlacementKind::list) return placement.nodes;
    return placement_words[static_cast<std::size_t>(placement.kind)];
}

}  // namespace

void read_what_if_fabric(const ObjectReader& reader, const ClusterSpec& cluster, WhatIf& what_if) {
    read_fabric(reader, what_if);
    check_switches(reader, "fabric", what_if, cluster);
    const std::uint64_t nodes = nodes_in_use(cluster);
    std::uint64_t other_nodes = 0;
    if (reader.has("placement")) what_if.placement = read_placement(reader, nodes);
    if (const auto background = reader.object("background"))
        what_if.background = read_background(*background, what_if, other_nodes);
    check_size(reader, what_if, nodes, other_nodes);
    const FabricSites sites = place_jobs(what_if, nodes, other_nodes);
    if (sites.nodes > 0 && sites.background.size() != other_nodes)
        reader.fail("background",
                    fmt::format("it needs {} nodes, but {} of those listed for it are free", other_nodes,
                                sites.background.size()),
                    "list nodes that this job is not on");
}

void write_what_if_fabric(const WhatIf& what_if, ordered_json& out) {
    write_fabric(what_if, out);
    if (what_if.placement != Placement{}) out["placement"] = to_json(what_if.placement);
    if (!what_if.background) return;
    out["background"] = {{"name", what_if.background->name},
                         {"scenario", ordered_json::parse(what_if.background->scenario_json)}};
    if (what_if.background->placement)
        out["background"]["placement"] = to_json(*what_if.background->placement);
}

Setting placement_setting(const std::string& text, const std::string& origin) {
    json nodes = json::array();
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find(',', at), text.size());
        std::uint64_t first = 0, last = 0;
        const char* stop = text.data() + end;
        auto parsed = std::from_chars(text.data() + at, stop, first);
        last = first;
        if (parsed.ec == std::errc{} && parsed.ptr != stop && *parsed.ptr == '-')
            parsed = std::from_chars(parsed.ptr + 1, stop, last);
        if (parsed.ec != std::errc{} || parsed.ptr != stop || last < first || last - first > most_nodes)
            return word_setting("/what_if/placement", text, origin);
        for (std::uint64_t node = first; node <= last; ++node) nodes.push_back(node);
        at = end + 1;
    }
    return {"/what_if/placement", nodes.dump(), origin};
}

Setting background_setting(const std::string& file, const std::string& origin) {
    const json value = {{"file", absolute_path(file, origin)}};
    return {"/what_if/background", value.dump(-1, ' ', false, json::error_handler_t::replace), origin};
}

std::vector<Warning> what_if_warnings(const Scenario& scenario, const WhatIf& what_if) {
    std::vector<Warning> warnings;
    const auto warn = [&warnings](const char* message) {
        warnings.push_back({"what_if_without_effect", message});
    };
    if ((what_if.background || what_if.placement != Placement{}) && !blocks(fabric_of(what_if)))
        warn(
            "switches that don't block leave every NIC its bandwidth, wherever a job is and whatever runs "
            "beside "
            "it: only with --leaf-switches NODES:RATIO, RATIO above 1, or a --fabric that blocks do jobs "
            "share "
            "links");
    const bool one_node = nodes_in_use(scenario.cluster) == 1;
    if (!one_node && blocks(fabric_of(what_if)))
        warnings.push_back({"closed_form_without_fabric",
                            "the closed form of the step knows no fabric: what its links hold back is in the "
                            "simulated step alone"});
    for (const SlowLink& link : what_if.slow_links)
        if (one_node && link.kind != SlowLinkKind::gpu) warn("the job is on one node: nothing crosses a NIC");
    return warnings;
}

}  // namespace zeroplan
