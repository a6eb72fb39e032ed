#include "json/cluster_json.hpp"

#include <cstdio>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "embedded_files.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;
using testing::HasSubstr;

ClusterSpec read(const char* text) {
    return read_cluster(json::parse(text), {"s.json", "/cluster"});
}

Error error_of(const char* text) {
    try {
        read(text);
    } catch (const Error& error) {
        return error;
    }
    ADD_FAILURE() << "accepted: " << text;
    return Error(ErrorCode::invalid_input, "");
}

TEST(ReadCluster, IsOneNodeOfDgxH100WithoutAnything) {
    const ClusterSpec cluster = read("{}");
    EXPECT_EQ(cluster.topology, "dgx-h100");
    EXPECT_EQ(cluster.nodes, 1U);
    EXPECT_EQ(cluster.gpus_used, 8U);
    EXPECT_EQ(cluster.gpu.name, "h100-sxm-80gb");
    EXPECT_EQ(cluster.intra_node, IntraNode::nvswitch);
    EXPECT_EQ(cluster.inter_node.bytes_per_s_per_gpu, 50e9);
    EXPECT_EQ(cluster.host.cores, 112U);
}

TEST(ReadCluster, ReadsEveryTopology) {
    for (const embedded::File& file : embedded::topologies()) {
        const ClusterSpec cluster = read_cluster({{"topology", file.name}}, {});
        EXPECT_EQ(cluster.topology, file.name);
        EXPECT_EQ(read_cluster(cluster_json(cluster), {}), cluster);
        EXPECT_TRUE(json::parse(file.text).at("sources").is_object());
    }
    EXPECT_TRUE(read(R"({"topology": "host", "gpus_used": 4})").gpu.is_host);
}

TEST(ReadCluster, OverridesTheTopology) {
    const ClusterSpec cluster = read(R"({"topology": "dgx-a100", "nodes": 4, "gpu": "a100-sxm-40gb",
        "host": {"memory_bytes": 1099511627776}, "inter_node": {"bytes_per_second_per_gpu": 12500000000},
        "power_limit_watts": 300})");
    EXPECT_EQ(cluster.gpus_used, 32U);
    EXPECT_EQ(cluster.gpu.name, "a100-sxm-40gb");
    EXPECT_EQ(cluster.host.memory.count(), 1ULL << 40);
    EXPECT_EQ(cluster.host.cores, 128U);
    EXPECT_EQ(cluster.inter_node.kind, InterNodeKind::infiniband);
    EXPECT_EQ(cluster.inter_node.bytes_per_s_per_gpu, 12.5e9);
    EXPECT_EQ(cluster.power_limit_watts, 300.0);
    EXPECT_EQ(read_cluster(cluster_json(cluster), {}), cluster);
}

TEST(ReadCluster, ReadsWhetherTheNetworkReduces) {
    const ClusterSpec cluster = read(R"({"nodes": 2, "inter_node": {"sharp": true, "nics_per_node": 4},
                                         "nccl": {"algorithm": "collnet_direct"}})");
    EXPECT_TRUE(cluster.inter_node.sharp);
    EXPECT_EQ(cluster.inter_node.nics_per_node, 4U);
    EXPECT_EQ(cluster.inter_node.bytes_per_s_per_gpu, 50e9);
    EXPECT_EQ(cluster.nccl.algorithm, CollectiveAlgorithm::collnet_direct);
    EXPECT_EQ(read_cluster(cluster_json(cluster), {}), cluster);
    EXPECT_FALSE(cluster_json(read("{}"))["inter_node"].contains("sharp"));
}

TEST(ReadCluster, RefusesCollNetOnSwitchesThatDontReduce) {
    const Error error = error_of(R"({"nodes": 2, "nccl": {"algorithm": "collnet_chain"}})");
    EXPECT_EQ(error.place().pointer, "/cluster/nccl/algorithm");
    EXPECT_THAT(error.message(), HasSubstr("cluster.inter_node.sharp is false"));
    EXPECT_THAT(error.hint(), HasSubstr("--set /cluster/inter_node/sharp=true"));
}

TEST(ReadCluster, RefusesSharpOnOtherNetworks) {
    const Error error = error_of(R"({"topology": "p5.48xlarge", "nodes": 2, "inter_node": {"sharp": true}})");
    EXPECT_EQ(error.place().pointer, "/cluster/inter_node/sharp");
    EXPECT_THAT(error.message(), HasSubstr("efa"));
}

TEST(ReadCluster, ReadsAnInlineCluster) {
    const ClusterSpec cluster = read(
        R"({"nodes": 1, "gpus_per_node": 2, "gpu": "rtx-3090-24gb", "host": {"memory_bytes": 137438953472}})");
    EXPECT_EQ(cluster.topology, "");
    EXPECT_EQ(cluster.gpus_used, 2U);
    EXPECT_EQ(cluster.intra_node, IntraNode::pcie);
    EXPECT_EQ(cluster.inter_node.kind, InterNodeKind::none);
    EXPECT_EQ(cluster.host.memory.count(), 137438953472U);
    EXPECT_EQ(cluster.host.pcie_bytes_per_s, 32e9);
    EXPECT_EQ(cluster.host.cores, 16U);
    EXPECT_EQ(read_cluster(cluster_json(cluster), {}), cluster);
    EXPECT_EQ(read(R"({"gpu": "mi300x-192gb"})").intra_node, IntraNode::xgmi);
    EXPECT_EQ(read(R"({"gpu": "gb10-128gb", "gpus_per_node": 1})").gpus_used, 1U);
}

TEST(ReadCluster, UsesPartOfOneNodeOrWholeNodes) {
    EXPECT_EQ(read(R"({"gpus_used": 3})").nodes, 1U);
    EXPECT_EQ(read(R"({"gpus_used": 64})").nodes, 8U);
    EXPECT_EQ(read(R"({"nodes": 4, "gpus_used": 16})").nodes, 4U);
    const Error uneven = error_of(R"({"gpus_used": 12})");
    EXPECT_EQ(uneven.place().pointer, "/cluster/gpus_used");
    EXPECT_EQ(uneven.message(), "12 GPUs do not fill whole nodes of 8");
    EXPECT_THAT(uneven.hint(), HasSubstr("use 8 or 16"));
    const Error many = error_of(R"({"nodes": 2, "gpus_used": 32})");
    EXPECT_THAT(many.message(), HasSubstr("32 GPUs are to be used, but 2 nodes × 8 GPUs are 16"));
    EXPECT_THAT(many.hint(), HasSubstr("raise nodes to 4"));
}

TEST(ReadCluster, RefusesNodesThatNothingConnects) {
    EXPECT_EQ(error_of(R"({"gpu": "a100-sxm-80gb", "nodes": 2})").place().pointer, "/cluster/inter_node");
    error_of(R"({"gpu": "gb10-128gb", "gpus_per_node": 2})");
    error_of(R"({"topology": "host", "nodes": 2})");
}

TEST(ReadCluster, RefusesAbsurdValuesAndUnknownWords) {
    EXPECT_EQ(error_of(R"({"node": 2})").hint(), "did you mean \"nodes\"?");
    EXPECT_THAT(error_of(R"({"topology": "dgx-h10"})").hint(), HasSubstr("\"dgx-h100\""));
    EXPECT_THAT(error_of(R"({"intra_node": "nvswich"})").hint(), HasSubstr("\"nvswitch\""));
    EXPECT_EQ(error_of(R"({"inter_node": {"kindd": "roce"}})").place().pointer, "/cluster/inter_node/kindd");
    for (const char* text :
         {R"({"nodes": 0})", R"({"nodes": -1})", R"({"nodes": 1.5})", R"({"nodes": 1e300})",
          R"({"nodes": "2"})", R"({"gpus_per_node": 1000000})", R"({"gpus_used": 0})",
          R"({"host": {"memory_bytes": -5}})", R"({"power_limit_watts": 0})", R"({"host": 3})",
          R"({"inter_node": {"bytes_per_second_per_gpu": 1e99}})", "[]"})
        EXPECT_EQ(error_of(text).code(), ErrorCode::invalid_input) << text;
}

TEST(ReadCluster, ReadsATopologyFileBesideTheScenario) {
    const std::string folder = testing::TempDir(), path = folder + "/my-rack.json";
    std::ofstream(path) << embedded::topologies()[0].text;
    const ClusterSpec cluster =
        read_cluster({{"topology", "my-rack.json"}, {"nodes", 2}}, {folder + "/scenario.json", "/cluster"});
    EXPECT_EQ(cluster.topology, "");
    EXPECT_EQ(cluster.nodes, 2U);
    EXPECT_EQ(read_cluster(cluster_json(cluster), {}), cluster);
    std::ofstream(path) << R"({"gpus_per_node": 8})";
    EXPECT_THROW(read_cluster({{"topology", path}}, {}), Error);
    std::remove(path.c_str());
    EXPECT_THROW(read_cluster({{"topology", path}}, {}), Error);
}

}  // namespace
}  // namespace zeroplan
