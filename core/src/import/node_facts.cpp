#include "import/node_facts.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "import/import_builder.hpp"
#include "json/cluster_json.hpp"
#include "json/gpu_json.hpp"

namespace zeroplan {
namespace {

using nlohmann::ordered_json;

/// Line rate of one NVLink and direction, by generation. source: NVIDIA's architecture white papers: 25 GB/s
/// in NVLink 2 (Volta), 3 (Ampere) and 4 (Hopper), 50 GB/s in NVLink 5 (Blackwell)
double nvlink_rate(const std::string& link) {
    return link == "nvlink5" ? 50e9 : 25e9;
}

/// Links of the GPU with most of them, to any one other GPU.
std::uint64_t most_links(const NodeFacts& facts) {
    std::uint64_t most = 0;
    for (const auto& row : facts.links)
        for (const std::uint64_t count : row) most = std::max(most, count);
    return most;
}

/// NVLinks that leave one GPU: those to the switch, or those to all others together.
std::uint64_t links_of_one(const NodeFacts& facts) {
    std::uint64_t most = 0;
    for (const auto& row : facts.links) {
        std::uint64_t sum = 0;
        for (const std::uint64_t count : row) sum = checked_sum(sum, count, "NVLinks");
        most = std::max(most, sum);
    }
    return facts.switched ? most_links(facts) : most;
}

std::uint64_t peers(const std::vector<std::uint64_t>& row) {
    return static_cast<std::uint64_t>(
        std::count_if(row.begin(), row.end(), [](auto count) { return count > 0; }));
}

bool all_pairs(const NodeFacts& facts) {
    return std::all_of(facts.links.begin(), facts.links.end(),
                       [&](const auto& row) { return peers(row) + 1 == facts.gpus; });
}

/// A V100 has 6 NVLinks, an A100 12: 8 to each of several others can only go to a switch.
constexpr std::uint64_t fewest_links_to_switch = 8;

/// Each GPU has NVLinks to one other at most.
bool in_pairs(const NodeFacts& facts) {
    return std::all_of(facts.links.begin(), facts.links.end(),
                       [](const auto& row) { return peers(row) <= 1; });
}

GpuSpec read_named_gpu(const Import& import, const NodeFacts& facts, const std::string& name) {
    GpuSpec gpu = read_gpu(nlohmann::json(name), {"command line", "--gpu"});
    // Bridges join PCIe cards in pairs, and the catalogue's link is what every such card has.
    const bool has_nvlink = gpu.link.starts_with("nvlink");
    const bool may_be_bridged = gpu.link.starts_with("pcie") && in_pairs(facts) && !facts.switched;
    if (most_links(facts) > 0 && !has_nvlink && !may_be_bridged)
        throw Error(ErrorCode::invalid_input,
                    fmt::format("{} has {}, but {} shows {} NVLinks between GPUs", gpu.name, gpu.link,
                                import.file, most_links(facts)),
                    "name the GPU that nvidia-smi -L shows (zeroplan list gpus)", {"command line", "--gpu"});
    if (facts.compute_capability != 0 && gpu.compute_capability != 0 &&
        facts.compute_capability != gpu.compute_capability)
        throw Error(ErrorCode::invalid_input,
                    fmt::format("{} has compute capability {}, but {} shows sm {}", gpu.name,
                                gpu.compute_capability, import.file, facts.compute_capability),
                    "name the GPU that nvidia-smi -L shows (zeroplan list gpus)", {"command line", "--gpu"});
    return gpu;
}

/// The GPU with the links that are there, where they are others than the catalogue's.
GpuSpec with_links(GpuSpec gpu, const NodeFacts& facts, IntraNode intra) {
    if (intra == IntraNode::pcie) {
        // NVLink that isn't used: what is left is the bus.
        if (gpu.link.starts_with("nvlink")) {
            const bool fifth = gpu.compute_capability >= 90;
            gpu.link = fifth ? "pcie5" : "pcie4";
            gpu.link_bytes_per_s = fifth ? 64e9 : 32e9;
        }
        return gpu;
    }
    if (gpu.link.starts_with("pcie")) return gpu;  // bridged: the cost model knows what bridges carry
    const double there = static_cast<double>(links_of_one(facts)) * nvlink_rate(gpu.link);
    if (std::abs(there / gpu.link_bytes_per_s - 1) > 0.01) gpu.link_bytes_per_s = there;
    return gpu;
}

ordered_json inter_node_json(const NodeFacts& facts) {
    if (facts.rails == 0 || facts.rail_bytes_per_s <= 0)
        return {{"kind", "none"}, {"bytes_per_second_per_gpu", 0}};
    const double per_gpu =
        static_cast<double>(facts.rails) * facts.rail_bytes_per_s / static_cast<double>(facts.gpus);
    return {{"kind", to_string(facts.network)}, {"bytes_per_second_per_gpu", per_gpu}};
}

std::string name_of(const std::string& file) {
    const std::string stem = std::filesystem::path(file).stem().string();
    return stem.empty() ? "imported" : stem;
}

ordered_json topology(const Import& import, const NodeFacts& facts, const GpuSpec& gpu, IntraNode intra) {
    const nlohmann::json as_cluster = {
        {"gpu", gpu_json(gpu)}, {"gpus_per_node", facts.gpus}, {"gpus_used", 1}};
    const ClusterSpec assumed = read_cluster(as_cluster, {import.file, ""});
    ordered_json out;
    out["name"] = name_of(import.file);
    out["description"] =
        fmt::format("{} {} on {}, from {}", facts.gpus, gpu.name, to_string(intra), facts.source);
    out["gpus_per_node"] = facts.gpus;
    out["gpu"] = gpu_json(gpu);
    out["intra_node"] = to_string(intra);
    out["inter_node"] = inter_node_json(facts);
    out["host"] = cluster_json(assumed)["host"];
    out["sources"] = {{"gpus_per_node, intra_node", fmt::format("{} of {}", facts.source, import.file)},
                      {"gpu", "named by the user"},
                      {"inter_node", facts.rail_bytes_per_s > 0
                                         ? fmt::format("{} adapters near GPUs", facts.rails)
                                         : std::string("unknown: the file has no rates of a network")},
                      {"host", "assumptions by the number of GPUs: replace them"}};
    return out;
}

void add_link_figures(Import& import, const NodeFacts& facts, const std::string& link) {
    const std::uint64_t links = links_of_one(facts);
    figure(import, "gpus_per_node", static_cast<double>(facts.gpus), "GPUs");
    if (links > 0) {
        figure(import, "nvlinks_per_gpu", static_cast<double>(links), "links");
        figure(import, "nvlink_bytes_per_s", static_cast<double>(links) * nvlink_rate(link), "B/s",
               link.empty() ? "line rate of a GPU and direction at 25 GB/s a link (NVLink 2 to 4; 5 has 50)"
                            : fmt::format("line rate of a GPU and direction, {}", link));
    }
    figure(import, "rails", static_cast<double>(facts.rails), "adapters", "network adapters near a GPU");
    if (facts.rail_bytes_per_s > 0)
        figure(import, "rail_bytes_per_s", facts.rail_bytes_per_s, "B/s", "of one adapter");
}

}  // namespace

IntraNode intra_node_of(const NodeFacts& facts, std::uint64_t links_of_gpu) {
    const std::uint64_t most = most_links(facts);
    if (most == 0) return IntraNode::pcie;
    if (facts.switched) return IntraNode::nvswitch;
    if (facts.gpus > 2 && all_pairs(facts)) {
        const bool fits_a_mesh =
            links_of_gpu == 0 ? most < fewest_links_to_switch : most * (facts.gpus - 1) <= links_of_gpu;
        return fits_a_mesh ? IntraNode::nvlink_mesh : IntraNode::nvswitch;
    }
    return in_pairs(facts) ? IntraNode::nvlink_pairs : IntraNode::nvlink_mesh;
}

void add_topology(Import& import, const NodeFacts& stated, const ImportContext& context) {
    NodeFacts facts = stated;
    std::optional<GpuSpec> gpu;
    if (!context.gpu.empty()) gpu = read_named_gpu(import, facts, context.gpu);
    const double links = gpu ? std::round(gpu->link_bytes_per_s / nvlink_rate(gpu->link)) : 0;
    const IntraNode intra = intra_node_of(facts, static_cast<std::uint64_t>(links));
    facts.switched = intra == IntraNode::nvswitch;
    add_link_figures(import, facts, gpu && gpu->link.starts_with("nvlink") ? gpu->link : "");
    note(import, Finding::resolved, "", 0,
         facts.gpus == 1 ? "one GPU: no links, and a world of one rank shards nothing"
                         : fmt::format("{} GPUs, connected by {}", facts.gpus, to_string(intra)));
    if (facts.rails > 0 && facts.rail_bytes_per_s <= 0)
        note(import, Finding::missing, "", 0, "the rates of the network adapters don't stand here",
             "tell them with --nic-gbps, as 400 for InfiniBand NDR");
    if (!gpu) {
        note(import, Finding::missing, "", 0, "which GPU it is doesn't stand here",
             "name it with --gpu (nvidia-smi -L shows it, zeroplan list gpus what is known)");
        return;
    }
    import.topology_json = topology(import, facts, with_links(*gpu, facts, intra), intra).dump(2);
}

}  // namespace zeroplan
