#include "zeroplan/topology_sources.hpp"

#include <gtest/gtest.h>

#include "zeroplan/io.hpp"

namespace zeroplan {
namespace {

ClusterSpec cluster(const char* text) {
    return resolve_scenario(
               {{}, std::string(R"({"model": {"preset": "gpt2"}, "cluster": )") + text + "}", {}, {}})
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

}  // namespace
}  // namespace zeroplan
