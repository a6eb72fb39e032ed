#include "json/nvlink_mesh.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace zeroplan {
namespace {

constexpr const char* key = "nvlink_mesh";
constexpr std::uint64_t most_links = 64;  ///< of one GPU to another; today's GPUs have 18 in all

[[noreturn]] void fail(const ObjectReader& topology, const std::string& pair, const std::string& what) {
    topology.fail(key, fmt::format("{} {}", pair, what),
                  "a list of [GPU, GPU, NVLinks], GPUs counted from 0, as in [[0, 1, 2], [0, 3, 1]]");
}

}  // namespace

std::vector<MeshLinks> read_nvlink_mesh(const ObjectReader& topology, const ClusterSpec& cluster) {
    const nlohmann::json* list = topology.find(key);
    if (list == nullptr) return {};
    if (!list->is_array()) fail(topology, list->dump(), "is no list of pairs");
    if (cluster.intra_node != IntraNode::nvlink_mesh)
        fail(topology, "pairs are given,",
             fmt::format("but intra_node is {}", std::string(to_string(cluster.intra_node))));
    std::vector<MeshLinks> mesh;
    for (const nlohmann::json& pair : *list) {
        const auto whole = [](const nlohmann::json& number) { return number.is_number_unsigned(); };
        if (!pair.is_array() || pair.size() != 3 || !std::all_of(pair.begin(), pair.end(), whole))
            fail(topology, pair.dump(), "is not three whole numbers");
        const MeshLinks one{pair[0], pair[1], pair[2]};
        if (one.links == 0 || one.links > most_links)
            fail(topology, pair.dump(), fmt::format("has {} links, of at most {}", one.links, most_links));
        if (one.a >= one.b || one.b >= cluster.gpus_per_node)
            fail(topology, pair.dump(),
                 fmt::format("joins no two GPUs of a node of {}", cluster.gpus_per_node));
        if (std::any_of(mesh.begin(), mesh.end(),
                        [&](const MeshLinks& m) { return m.a == one.a && m.b == one.b; }))
            fail(topology, pair.dump(), "stands twice");
        mesh.push_back(one);
    }
    return mesh;
}

}  // namespace zeroplan
