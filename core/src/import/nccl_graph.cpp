#include <array>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "import/import_readers.hpp"
#include "import/xml_document.hpp"

namespace zeroplan {
namespace {

using nlohmann::ordered_json;

/// source: nccl/src/include/graph.h, NCCL_TOPO_PATTERN_*, from 1 on
constexpr std::array<const char*, 6> patterns{"balanced_tree", "split_tree", "tree",
                                              "ring",          "nvls",       "collnet_direct"};
/// source: nccl/src/include/graph.h and MAXCHANNELS of device.h
constexpr std::uint64_t most_channels = 64, most_devices = 1'000'000;
constexpr double most_speed = 10'000;  ///< GB/s of a channel

struct Channel {
    std::vector<std::uint64_t> gpus, networks;
};

struct Graph {
    std::uint64_t id = 0;
    std::string pattern;
    std::uint64_t channels = 0;
    double intra_bytes_per_s = 0, inter_bytes_per_s = 0;  ///< of one channel
    std::vector<Channel> order;
};

constexpr const char* dump_again = "let NCCL write the file again: NCCL_GRAPH_DUMP_FILE=FILE";

/// Newer files name a GPU by "dev", some by "rank" alone.
std::uint64_t device(const XmlDocument& xml, const pugi::xml_node& node) {
    if (const auto dev = xml.integer(node, "dev", most_devices)) return *dev;
    if (const auto rank = xml.integer(node, "rank", most_devices)) return *rank;
    xml.fail(node, "neither dev nor rank is stated", dump_again);
}

Channel read_channel(const XmlDocument& xml, const pugi::xml_node& node) {
    Channel channel;
    for (const pugi::xml_node& gpu : node.children("gpu")) channel.gpus.push_back(device(xml, gpu));
    for (const pugi::xml_node& net : node.children("net")) channel.networks.push_back(device(xml, net));
    return channel;
}

Graph read_graph(const XmlDocument& xml, const pugi::xml_node& node) {
    Graph graph;
    graph.id = xml.integer(node, "id", 100).value_or(0);
    const std::uint64_t pattern = xml.integer(node, "pattern", patterns.size()).value_or(0);
    if (pattern == 0) xml.fail(node, "the graph has no pattern", "1 to 6, as NCCL writes it");
    graph.pattern = patterns.at(pattern - 1);
    graph.channels = xml.integer(node, "nchannels", most_channels).value_or(0);
    graph.intra_bytes_per_s = 1e9 * xml.number(node, "speedintra", most_speed).value_or(0);
    graph.inter_bytes_per_s = 1e9 * xml.number(node, "speedinter", most_speed).value_or(0);
    for (const pugi::xml_node& channel : node.children("channel")) {
        graph.order.push_back(read_channel(xml, channel));
        if (graph.order.size() > most_channels)
            xml.fail(channel, fmt::format("more than {} channels", most_channels), dump_again);
    }
    if (!graph.order.empty() && graph.order.size() != graph.channels)
        xml.fail(
            node,
            fmt::format("nchannels is {}, but there are {} <channel>s", graph.channels, graph.order.size()),
            dump_again);
    return graph;
}

void add_figures(Import& import, const Graph& graph) {
    figure(import, graph.pattern + ".channels", static_cast<double>(graph.channels), "channels");
    const double channels = static_cast<double>(graph.channels);
    figure(
        import, graph.pattern + ".intra_bytes_per_s", channels * graph.intra_bytes_per_s, "B/s",
        fmt::format("{} channels of {} GB/s inside the node", graph.channels, graph.intra_bytes_per_s / 1e9));
    figure(
        import, graph.pattern + ".inter_bytes_per_s", channels * graph.inter_bytes_per_s, "B/s",
        fmt::format("{} channels of {} GB/s between nodes", graph.channels, graph.inter_bytes_per_s / 1e9));
}

ordered_json graph_json(const Graph& graph) {
    ordered_json order = ordered_json::array();
    for (const Channel& channel : graph.order)
        order.push_back({{"gpus", channel.gpus}, {"networks", channel.networks}});
    return {{"pattern", graph.pattern},
            {"channels", graph.channels},
            {"channel_intra_bytes_per_s", graph.intra_bytes_per_s},
            {"channel_inter_bytes_per_s", graph.inter_bytes_per_s},
            {"order", order}};
}

}  // namespace

Import import_nccl_graph(std::string_view text, const std::string& file) {
    Import import;
    import.kind = ImportKind::nccl_graph;
    import.file = import.scenario.file = file;
    const XmlDocument xml(import, text, "graphs");
    ordered_json graphs = ordered_json::array();
    for (const pugi::xml_node& node : xml.root().children("graph")) {
        const Graph graph = read_graph(xml, node);
        if (graph.channels == 0) continue;  // an algorithm that this machine hasn't got
        add_figures(import, graph);
        graphs.push_back(graph_json(graph));
        for (std::size_t i = 0; i < graph.order.size(); ++i)
            note(import, Finding::resolved, graph.pattern, xml.line(node),
                 fmt::format("channel {}: GPUs {}", i, fmt::join(graph.order[i].gpus, " → ")));
    }
    if (graphs.empty()) xml.fail(xml.root(), "no <graph> with channels", "dump it with NCCL_GRAPH_DUMP_FILE");
    const ordered_json calibration = {
        {"schema", 1}, {"kind", "calibration"}, {"source", file}, {"graphs", graphs}};
    import.calibration_json = calibration.dump(2, ' ', false, ordered_json::error_handler_t::replace);
    return import;
}

}  // namespace zeroplan
