#include "json/cluster_json.hpp"

#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "embedded_files.hpp"
#include "import/json_looks.hpp"
#include "json/calibration_json.hpp"
#include "json/gpu_json.hpp"
#include "json/nvlink_mesh.hpp"
#include "json/object_reader.hpp"
#include "json/parse.hpp"
#include "nearest.hpp"
#include "zeroplan/io.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

constexpr std::string_view default_topology = "dgx-h100";

// No cluster comes near these; a larger number is a unit mistaken.
constexpr std::uint64_t most_nodes = 1'000'000, most_gpus_per_node = 4096, most_cores = 100'000;
constexpr std::uint64_t most_ranks = 16'384;
constexpr std::uint64_t largest_memory = 1'000'000'000'000'000;
constexpr double largest_rate = 1e15;

// Assumptions about the host of an inline cluster that does not describe it, for each GPU of the node.
constexpr std::uint64_t assumed_host_memory_per_gpu = 64ULL << 30;
constexpr std::uint64_t assumed_cores_per_gpu = 8;
constexpr double assumed_dram_rate = 200e9, assumed_nvme_rate = 3e9;

constexpr std::string_view scenario_keys[] = {
    "topology",   "nodes", "gpus_per_node",     "gpus_used", "gpu",        "intra_node",
    "inter_node", "host",  "power_limit_watts", "nccl",      "calibration"};
constexpr std::string_view topology_file_keys[] = {
    "name", "description", "provider",   "note", "sources",           "nodes",  "gpus_per_node",
    "gpu",  "intra_node",  "inter_node", "host", "power_limit_watts", "fabric", "nvlink_mesh"};

void read_inter_node(const ObjectReader& reader, InterNode& inter_node) {
    reader.allow_only({"kind", "bytes_per_second_per_gpu", "nics_per_node", "sharp"});
    inter_node.kind = reader.word<InterNodeKind>("kind").value_or(inter_node.kind);
    inter_node.bytes_per_s_per_gpu =
        reader.number("bytes_per_second_per_gpu", 0, largest_rate).value_or(inter_node.bytes_per_s_per_gpu);
    inter_node.nics_per_node =
        reader.integer("nics_per_node", 1, most_gpus_per_node).value_or(inter_node.nics_per_node);
    inter_node.sharp = reader.boolean("sharp").value_or(inter_node.sharp);
}

/// As NCCL_ALGO and NCCL_PROTO force it.
CollectiveChoice read_nccl(const ObjectReader& reader) {
    reader.allow_only({"algorithm", "protocol"});
    return {reader.word<CollectiveAlgorithm>("algorithm"), reader.word<CollectiveProtocol>("protocol")};
}

void read_host(const ObjectReader& reader, HostSpec& host) {
    reader.allow_only(
        {"memory_bytes", "dram_bytes_per_second", "pcie_bytes_per_second", "nvme_bytes_per_second", "cores"});
    const auto rate = [&](std::string_view key, double& value) {
        value = reader.number(key, 1, largest_rate).value_or(value);
    };
    host.memory = Bytes{reader.integer("memory_bytes", 1, largest_memory).value_or(host.memory.count())};
    host.cores = reader.integer("cores", 1, most_cores).value_or(host.cores);
    rate("dram_bytes_per_second", host.dram_bytes_per_s);
    rate("pcie_bytes_per_second", host.pcie_bytes_per_s);
    rate("nvme_bytes_per_second", host.nvme_bytes_per_s);
}

/// Everything that a topology file and a scenario have in common; what is absent stays as it is.
void read_hardware(const ObjectReader& reader, ClusterSpec& cluster) {
    cluster.gpus_per_node =
        reader.integer("gpus_per_node", 1, most_gpus_per_node).value_or(cluster.gpus_per_node);
    if (const json* gpu = reader.find("gpu")) cluster.gpu = read_gpu(*gpu, reader.place("gpu"));
    cluster.intra_node = reader.word<IntraNode>("intra_node").value_or(cluster.intra_node);
    if (const auto inter_node = reader.object("inter_node")) read_inter_node(*inter_node, cluster.inter_node);
    if (const auto host = reader.object("host")) read_host(*host, cluster.host);
    if (const auto watts = reader.number("power_limit_watts", 1, 100'000)) cluster.power_limit_watts = watts;
}

ClusterSpec read_topology_text(std::string_view text, const std::string& file) {
    const json value = parse_json(text, file);
    const ObjectReader reader(value, {file, ""});
    if (const JsonLook* look = json_look(value); look != nullptr && !reader.has("gpus_per_node"))
        throw Error(ErrorCode::invalid_input, fmt::format("this is {}, not a topology", look->what),
                    std::string(look->hint), {file, fmt::format("/{}", look->key)});
    reader.allow_only(topology_file_keys);
    for (const std::string_view key : {"gpus_per_node", "gpu", "intra_node", "host"})
        if (!reader.has(key))
            reader.fail(
                key, fmt::format("a topology needs \"{}\"", key),
                "it has the keys of \"cluster\" in a scenario; zeroplan import makes one of nvidia-smi "
                "topo -m");
    ClusterSpec cluster;
    cluster.nodes = reader.integer("nodes", 1, most_nodes).value_or(1);
    read_hardware(reader, cluster);
    for (const std::string_view key :
         {"memory_bytes", "dram_bytes_per_second", "pcie_bytes_per_second", "nvme_bytes_per_second", "cores"})
        if (!reader.object("host")->has(key))
            reader.fail("host", fmt::format("a topology's host needs \"{}\"", key),
                        fmt::format("add \"{}\": a number", key));
    (void)read_nvlink_mesh(reader, cluster);  // for drawings only: checked here, with the rest
    return cluster;
}

std::string topology_path(const std::string& name, const ErrorPlace& place) {
    namespace fs = std::filesystem;
    const fs::path beside = fs::path(place.file).parent_path() / name;
    std::error_code ignored;
    return fs::exists(beside, ignored) ? beside.string() : name;
}

ClusterSpec read_topology(const std::string& name, const ErrorPlace& place) {
    for (const embedded::File& file : embedded::topologies()) {
        if (file.name != name) continue;
        ClusterSpec cluster = read_topology_text(file.text, fmt::format("topologies/{}.json", name));
        cluster.topology = name;
        return cluster;
    }
    if (name.find('/') != std::string::npos || name.ends_with(".json")) {
        const std::string path = topology_path(name, place);
        return read_topology_text(read_text_file(path), path);
    }
    std::vector<std::string_view> names;
    for (const embedded::File& file : embedded::topologies()) names.push_back(file.name);
    throw Error(ErrorCode::not_found, fmt::format("no topology is named \"{}\"", name),
                nearest_hint(name, names) + "; a file of your own needs its path or the ending .json", place);
}

IntraNode usual_intra_node(const GpuSpec& gpu) {
    if (gpu.link.starts_with("nvlink")) return IntraNode::nvswitch;
    if (gpu.link == "xgmi") return IntraNode::xgmi;
    if (gpu.link == "shared_memory") return IntraNode::shared_memory;
    return IntraNode::pcie;
}

/// x16 per direction of the generation that a GPU with this link is built with.
double usual_pcie_rate(const GpuSpec& gpu) {
    if (gpu.link == "nvlink2" || gpu.link == "pcie3") return 16e9;
    if (gpu.link == "nvlink3" || gpu.link == "pcie4") return 32e9;
    if (gpu.link == "shared_memory") return gpu.hbm_bytes_per_s;
    return 64e9;
}

/// What an inline cluster starts from: a node of GPUs of this kind.
ClusterSpec node_of(const GpuSpec& gpu, std::uint64_t gpus_per_node) {
    ClusterSpec cluster;
    cluster.gpu = gpu;
    cluster.gpus_per_node = gpus_per_node;
    cluster.intra_node = usual_intra_node(gpu);
    cluster.host.memory = gpus_per_node * Bytes{assumed_host_memory_per_gpu};
    cluster.host.cores = gpus_per_node * assumed_cores_per_gpu;
    cluster.host.dram_bytes_per_s = assumed_dram_rate;
    cluster.host.pcie_bytes_per_s = usual_pcie_rate(gpu);
    cluster.host.nvme_bytes_per_s = assumed_nvme_rate;
    return cluster;
}

ClusterSpec starting_point(const ObjectReader& reader) {
    if (const auto topology = reader.string("topology"))
        return read_topology(*topology, reader.place("topology"));
    const json* gpu = reader.find("gpu");
    if (gpu == nullptr) return read_topology(std::string(default_topology), reader.place());
    return node_of(read_gpu(*gpu, reader.place("gpu")),
                   reader.integer("gpus_per_node", 1, most_gpus_per_node).value_or(8));
}

void check_gpus_used(const ObjectReader& reader, const ClusterSpec& cluster) {
    const std::uint64_t used = cluster.gpus_used, per_node = cluster.gpus_per_node;
    const std::uint64_t all = checked_product(cluster.nodes, per_node, "GPUs of the cluster");
    if (used > all)
        reader.fail(
            "gpus_used",
            fmt::format("{} GPUs are to be used, but {} nodes × {} GPUs are {}", used, cluster.nodes,
                        per_node, all),
            fmt::format("raise nodes to {}, or use at most {}", (used + per_node - 1) / per_node, all));
    if (used > per_node && used % per_node != 0)
        reader.fail("gpus_used", fmt::format("{} GPUs do not fill whole nodes of {}", used, per_node),
                    fmt::format("use {} or {}, or fewer than {} on one node", used / per_node * per_node,
                                round_up(used, per_node), per_node));
}

/// More ranks than any rule here was checked with.
void check_world_size(const ObjectReader& reader, const ClusterSpec& cluster) {
    if (cluster.gpus_used <= most_ranks) return;
    const bool states_gpus = reader.has("gpus_used");
    reader.fail(states_gpus ? "gpus_used" : "nodes",
                states_gpus
                    ? fmt::format("{} ranks are more than the {} that can be planned",
                                  format_count(cluster.gpus_used), format_count(most_ranks))
                    : fmt::format("{} nodes × {} GPUs = {} ranks are more than the {} that can be planned",
                                  format_count(cluster.nodes), cluster.gpus_per_node,
                                  format_count(cluster.gpus_used), format_count(most_ranks)),
                cluster.gpus_per_node <= most_ranks
                    ? fmt::format("use at most {} nodes of {} GPUs", most_ranks / cluster.gpus_per_node,
                                  cluster.gpus_per_node)
                    : fmt::format("use at most {} GPUs", most_ranks));
}

/// `nodes` and `gpus_used`, each of which gives the other where it is absent.
void read_counts(const ObjectReader& reader, ClusterSpec& cluster) {
    const auto nodes = reader.integer("nodes", 1, most_nodes);
    const auto used = reader.integer("gpus_used", 1, most_nodes * most_gpus_per_node);
    if (nodes) cluster.nodes = *nodes;
    if (!nodes && used) cluster.nodes = (*used + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
    cluster.gpus_used =
        used ? *used : checked_product(cluster.nodes, cluster.gpus_per_node, "GPUs of the cluster");
    check_gpus_used(reader, cluster);
    check_world_size(reader, cluster);
}

/// Ranks that talk need a link to talk over.
void check_links(const ObjectReader& reader, const ClusterSpec& cluster) {
    if (cluster.gpus_used > 1 && cluster.gpus_per_node > 1 && cluster.gpu.link_bytes_per_s <= 0)
        reader.fail("gpu",
                    fmt::format("{} has no link to other GPUs of a node, but a node has {}", cluster.gpu.name,
                                cluster.gpus_per_node),
                    "set gpus_per_node to 1, or give link_bytes_per_s_per_direction");
    const InterNode& between = cluster.inter_node;
    const bool has_kind = between.kind != InterNodeKind::none;
    const bool connected = has_kind && between.bytes_per_s_per_gpu > 0;
    const bool of_topology = !reader.has("inter_node") && reader.has("topology");
    if (cluster.gpus_used > cluster.gpus_per_node && !connected)
        reader.fail(
            of_topology ? "topology" : "inter_node",
            fmt::format("{} GPUs stand on several nodes of {}, but {}{}", cluster.gpus_used,
                        cluster.gpus_per_node,
                        has_kind ? fmt::format("{} between them carries bytes_per_second_per_gpu {}",
                                               to_string(between.kind), between.bytes_per_s_per_gpu)
                                 : "nothing connects the nodes",
                        of_topology ? fmt::format(" in topology {}", *reader.string("topology")) : ""),
            R"(give for example "inter_node": {"kind": "infiniband", "bytes_per_second_per_gpu": 50000000000}, )"
            R"(or the machines that the GPUs stand in: "topology": "dgx-h100")");
}

/// Switches reduce where there are such, and CollNet runs on those alone.
void check_sharp(const ObjectReader& reader, const ClusterSpec& cluster) {
    const InterNode& between = cluster.inter_node;
    const auto stated = reader.object("inter_node");
    if (between.sharp && between.kind != InterNodeKind::infiniband)
        (stated && stated->has("sharp") ? *stated : reader)
            .fail(stated && stated->has("sharp") ? "sharp" : "inter_node",
                  fmt::format("sharp is true, but the kind of network is {}: SHARP reduces in InfiniBand's "
                              "switches",
                              to_string(between.kind)),
                  "set sharp to false, or kind to infiniband");
    if (cluster.nccl.algorithm && is_collnet(*cluster.nccl.algorithm) && !between.sharp)
        reader.object("nccl")->fail(
            "algorithm",
            fmt::format("{} needs switches that reduce (SHARP), but cluster.inter_node.sharp is false",
                        to_string(*cluster.nccl.algorithm)),
            "where the network has them and NCCL_COLLNET_ENABLE is 1, say so with --set "
            "/cluster/inter_node/sharp=true; else force another algorithm, or none");
}

}  // namespace

std::span<const std::string_view> cluster_keys() {
    return scenario_keys;
}

ClusterSpec read_cluster(const json& value, ErrorPlace place) {
    const ObjectReader reader(value, std::move(place));
    reader.allow_only(scenario_keys);
    ClusterSpec cluster = starting_point(reader);
    read_hardware(reader, cluster);
    if (const auto nccl = reader.object("nccl")) cluster.nccl = read_nccl(*nccl);
    if (const json* calibration = reader.find("calibration"))
        cluster.calibration = read_calibration(*calibration, reader.place("calibration"));
    read_counts(reader, cluster);
    check_links(reader, cluster);
    check_sharp(reader, cluster);
    return cluster;
}

json cluster_json(const ClusterSpec& cluster) {
    json result = {{"nodes", cluster.nodes},
                   {"gpus_per_node", cluster.gpus_per_node},
                   {"gpus_used", cluster.gpus_used},
                   {"gpu", gpu_json(cluster.gpu)},
                   {"intra_node", to_string(cluster.intra_node)},
                   {"inter_node",
                    {{"kind", to_string(cluster.inter_node.kind)},
                     {"bytes_per_second_per_gpu", cluster.inter_node.bytes_per_s_per_gpu}}},
                   {"host",
                    {{"memory_bytes", cluster.host.memory.count()},
                     {"dram_bytes_per_second", cluster.host.dram_bytes_per_s},
                     {"pcie_bytes_per_second", cluster.host.pcie_bytes_per_s},
                     {"nvme_bytes_per_second", cluster.host.nvme_bytes_per_s},
                     {"cores", cluster.host.cores}}}};
    if (cluster.inter_node.nics_per_node > 0)
        result["inter_node"]["nics_per_node"] = cluster.inter_node.nics_per_node;
    if (cluster.inter_node.sharp) result["inter_node"]["sharp"] = true;
    if (!cluster.topology.empty()) result["topology"] = cluster.topology;
    if (cluster.power_limit_watts) result["power_limit_watts"] = *cluster.power_limit_watts;
    if (!cluster.calibration.empty()) result["calibration"] = calibration_json(cluster.calibration);
    if (cluster.nccl.algorithm) result["nccl"]["algorithm"] = to_string(*cluster.nccl.algorithm);
    if (cluster.nccl.protocol) result["nccl"]["protocol"] = to_string(*cluster.nccl.protocol);
    return result;
}

}  // namespace zeroplan
