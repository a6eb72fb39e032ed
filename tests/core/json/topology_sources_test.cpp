#include "zeroplan/topology_sources.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/json/error_of.hpp"
#include "json/nvlink_mesh.hpp"
#include "zeroplan/io.hpp"

namespace zeroplan {
namespace {

ClusterSpec cluster(const char* text) {
    return resolve_scenario(
               {{},
                std::string(
                    R"({"model": {"preset": "gpt2"}, "training": {"compute_dtype": "fp16"}, "cluster": )") +
                    text + "}",
                {},
                {}})
        .cluster;
}

TEST(TopologySources, AreWhatThePresetsFilesState) {
    const TopologySources sources = topology_sources(cluster(R"({"topology": "dgx-h100", "nodes": 2})"));
    EXPECT_TRUE(sources.inter_node.starts_with("8 × 400 Gb/s a node for 8 GPUs")) << sources.inter_node;
    EXPECT_TRUE(sources.intra_node.starts_with("mlcommons/training_results_v4.0")) << sources.intra_node;
    EXPECT_TRUE(sources.pcie.starts_with("PCIe 5.0 x16 per GPU and direction")) << sources.pcie;
    EXPECT_FALSE(sources.gpu_link.empty());
}

TEST(TopologySources, AreNotThoseOfFiguresTheScenarioBrings) {
    const TopologySources sources = topology_sources(cluster(
        R"({"topology": "dgx-h100", "nodes": 2, "inter_node": {"kind": "roce", "bytes_per_second_per_gpu": 25e9}})"));
    EXPECT_EQ(sources.inter_node, "");
    EXPECT_NE(sources.intra_node, "");
    EXPECT_EQ(topology_sources(cluster(R"({"gpu": "a100-sxm-80gb", "gpus_used": 4})")).intra_node, "");
}

// Six NVLinks a V100: https://www.iitr.ac.in/dgx
TEST(TopologySources, HaveTheLinksOfAMesh) {
    const auto mesh = topology_sources(cluster(R"({"topology": "dgx-1-v100"})")).mesh;
    std::vector<std::uint64_t> links(8);
    for (const MeshLinks& pair : mesh) {
        links[pair.a] += pair.links;
        links[pair.b] += pair.links;
    }
    EXPECT_EQ(links, std::vector<std::uint64_t>(8, 6));
    EXPECT_EQ(mesh.size(), 16U);
    EXPECT_TRUE(
        topology_sources(cluster(R"({"topology": "dgx-1-v100", "intra_node": "pcie"})")).mesh.empty());
    EXPECT_TRUE(topology_sources(cluster(R"({"topology": "dgx-h100"})")).mesh.empty());
}

TEST(NvlinkMesh, IsRefusedWhereItIsNoPairOfTheNodes) {
    const auto read = [](const char* text) {
        ClusterSpec node;
        node.gpus_per_node = 4;
        node.intra_node = IntraNode::nvlink_mesh;
        const auto file = nlohmann::json::parse(text);
        return read_nvlink_mesh(ObjectReader(file, {"t.json", ""}), node);
    };
    EXPECT_EQ(read(R"({"nvlink_mesh": [[0, 3, 2]]})"), (std::vector<MeshLinks>{{0, 3, 2}}));
    EXPECT_TRUE(read("{}").empty());
    for (const char* wrong :
         {R"({"nvlink_mesh": {}})", R"({"nvlink_mesh": [[0, 1]]})", R"({"nvlink_mesh": [[0, 4, 1]]})",
          R"({"nvlink_mesh": [[1, 0, 1]]})", R"({"nvlink_mesh": [[0, 1, 0]]})",
          R"({"nvlink_mesh": [[0, 1, 1.5]]})", R"({"nvlink_mesh": [[0, 1, 1], [0, 1, 2]]})"})
        EXPECT_EQ(error_of([&] { read(wrong); }).place(), (ErrorPlace{"t.json", "/nvlink_mesh"})) << wrong;
}

}  // namespace
}  // namespace zeroplan
