#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "embedded_files.hpp"
#include "json/cluster_json.hpp"
#include "json/gpu_json.hpp"
#include "json/nvlink_mesh.hpp"
#include "json/parse.hpp"
#include "zeroplan/topology_sources.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

json file_of(std::span<const embedded::File> files, const std::string& name) {
    const auto found = std::find_if(files.begin(), files.end(),
                                    [&](const embedded::File& file) { return file.name == name; });
    return found == files.end() ? json::object() : parse_json(found->text, name + ".json");
}

/// The source whose key, a list as "gpus_per_node, gpu, intra_node", has `key` in it.
std::string source_of(const json& file, std::string_view key) {
    const json sources = file.value("sources", json::object());
    for (const auto& [keys, source] : sources.items())
        if (fmt::format(", {},", keys).find(fmt::format(", {},", key)) != std::string::npos)
            return source.get<std::string>();
    return {};
}

std::string link_source(const GpuSpec& gpu) {
    const json file = file_of(embedded::gpus(), gpu.name);
    if (file.empty() || read_gpu(gpu.name, {}).link_bytes_per_s != gpu.link_bytes_per_s) return {};
    const json figure = file.value("link_bytes_per_s_per_direction", json::object());
    return figure.is_object() ? figure.value("source", std::string()) : std::string();
}

}  // namespace

TopologySources topology_sources(const ClusterSpec& cluster) {
    TopologySources sources;
    sources.gpu_link = link_source(cluster.gpu);
    const json file = file_of(embedded::topologies(), cluster.topology);
    if (file.empty()) return sources;
    const ClusterSpec preset = read_cluster(json{{"topology", cluster.topology}}, {});
    if (preset.intra_node == cluster.intra_node) sources.intra_node = source_of(file, "intra_node");
    if (preset.intra_node == cluster.intra_node && preset.gpus_per_node == cluster.gpus_per_node)
        sources.mesh = read_nvlink_mesh(ObjectReader(file, {}), cluster);
    if (preset.inter_node == cluster.inter_node) sources.inter_node = source_of(file, "inter_node");
    if (preset.host.pcie_bytes_per_s == cluster.host.pcie_bytes_per_s)
        sources.pcie = source_of(file, "host.pcie_bytes_per_second");
    return sources;
}

}  // namespace zeroplan
