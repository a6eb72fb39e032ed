#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "core/import/import_file.hpp"
#include "core/json/error_of.hpp"
#include "json/cluster_json.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;
using testing::HasSubstr;

ImportContext with_gpu(const char* gpu, double nic_gbps = 0) {
    ImportContext context;
    context.gpu = gpu;
    context.nic_bytes_per_s = nic_gbps * 1e9 / 8;
    return context;
}

TEST(TopologyImport, ReadsAnNvSwitchNode) {
    const Import import = import_file("topo/hgx_h100_9nic.txt", with_gpu("h100-sxm-80gb", 400));
    EXPECT_EQ(import.figure("gpus_per_node"), 8);
    EXPECT_EQ(import.figure("nvlinks_per_gpu"), 18);
    EXPECT_EQ(import.figure("nvlink_bytes_per_s"), 450e9);
    EXPECT_EQ(import.figure("rails"), 8);  // NIC8 is the management adapter
    EXPECT_THAT(finding(import, Finding::resolved, "").message, HasSubstr("NIC8: near no GPU"));
    const json topology = json::parse(import.topology_json);
    EXPECT_EQ(topology["intra_node"], "nvswitch");
    EXPECT_EQ(topology["gpu"], "h100-sxm-80gb");  // the catalogue's 450 GB/s are the 18 links
    EXPECT_EQ(topology["inter_node"]["bytes_per_second_per_gpu"], 50e9);
}

TEST(TopologyImport, CountsAdaptersBehindASharedSwitch) {
    const Import import = import_file("topo/dgx_a100_10nic.txt", with_gpu("a100-sxm-80gb"));
    EXPECT_EQ(import.figure("nvlink_bytes_per_s"), 300e9);
    EXPECT_EQ(import.figure("rails"), 8);  // PXB, two for each pair of GPUs; NIC8 and NIC9 are SYS to all
    EXPECT_EQ(json::parse(import.topology_json)["inter_node"]["kind"], "none");
    EXPECT_THAT(finding(import, Finding::missing, "").hint, HasSubstr("--nic-gbps"));
}

TEST(TopologyImport, ReadsCardsOnPcie) {
    const Import import = import_file("topo/rtx4090_8x_pcie.txt", with_gpu("rtx-4090-24gb"));
    EXPECT_EQ(json::parse(import.topology_json)["intra_node"], "pcie");
    EXPECT_FALSE(import.figure("nvlinks_per_gpu"));
    EXPECT_EQ(import.figure("rails"), 0);
    EXPECT_THAT(finding(import, Finding::warning, "").message, HasSubstr("no NVLink"));
}

TEST(TopologyImport, InventsNoRingForOneGpu) {
    const Import import = import_file("topo/single_gpu_wsl.txt", with_gpu("rtx-4090-24gb"));
    EXPECT_EQ(import.figure("gpus_per_node"), 1);
    EXPECT_FALSE(import.figure("nvlinks_per_gpu"));
    EXPECT_THAT(import.findings[0].message, HasSubstr("one GPU"));
}

TEST(TopologyImport, WritesATopologyThatAScenarioTakes) {
    for (const auto& [file, gpu] : {std::pair{"topo/hgx_h100_9nic.txt", "h100-sxm-80gb"},
                                    {"topo/rtx4090_8x_pcie.txt", "rtx-4090-24gb"},
                                    {"topo/single_gpu_wsl.txt", "rtx-4090-24gb"},
                                    {"nccl/hopper_nvswitch_topo.xml", "h100-sxm-80gb"}}) {
        const Import import = import_file(file, with_gpu(gpu));
        const std::string path = testing::TempDir() + "/imported_topology.json";
        write_text_file(path, import.topology_json);
        const ClusterSpec cluster = read_cluster({{"topology", path}}, {});
        EXPECT_EQ(cluster.gpus_per_node, *import.figure("gpus_per_node")) << file;
        EXPECT_EQ(cluster.gpu.name, gpu) << file;
    }
}

TEST(TopologyImport, AsksForTheGpu) {
    const Import import = import_file("topo/hgx_h100_9nic.txt");
    EXPECT_EQ(import.topology_json, "");
    EXPECT_EQ(count(import, Finding::missing), 2U);  // the GPU, and the adapters' rate
    const Error error =
        error_of([] { (void)import_file("topo/hgx_h100_9nic.txt", with_gpu("rtx-4090-24gb")); });
    EXPECT_EQ(error.place(), (ErrorPlace{"command line", "--gpu"}));
    EXPECT_THAT(error.message(), HasSubstr("shows 18 NVLinks"));
}

/// A matrix of `n` GPUs in which `cell(i, j)` stands.
template <typename Cell>
std::string matrix(int n, Cell cell) {
    std::string text = "\t";
    for (int i = 0; i < n; ++i) text += "GPU" + std::to_string(i) + "\t";
    text += "CPU Affinity\tNUMA Affinity\n";
    for (int i = 0; i < n; ++i) {
        text += "GPU" + std::to_string(i);
        for (int j = 0; j < n; ++j) text += "\t" + (i == j ? std::string(" X ") : cell(i, j));
        text += "\t0-31\t0\n";
    }
    return text;
}

TEST(TopologyImport, TellsPairsMeshAndSwitchApart) {
    const auto intra = [](const std::string& text, const char* gpu) {
        return json::parse(import_text(text, "topo.txt", with_gpu(gpu)).topology_json)["intra_node"]
            .get<std::string>();
    };
    const std::string pairs =
        matrix(4, [](int i, int j) -> std::string { return i / 2 == j / 2 ? "NV12" : "SYS"; });
    EXPECT_EQ(intra(pairs, "a100-sxm-80gb"), "nvlink_pairs");
    // Four A100 with 4 links to each of three others: 12, all that an A100 has.
    EXPECT_EQ(intra(matrix(4, [](int, int) -> std::string { return "NV4"; }), "a100-sxm-80gb"),
              "nvlink_mesh");
    EXPECT_EQ(intra(matrix(4, [](int, int) -> std::string { return "NV12"; }), "a100-sxm-80gb"), "nvswitch");
    // DGX-1: no link between some pairs.
    EXPECT_EQ(intra(matrix(4, [](int i, int j) -> std::string { return (i + j) % 4 == 3 ? "SYS" : "NV2"; }),
                    "v100-sxm-16gb"),
              "nvlink_mesh");
}

TEST(TopologyImport, AcceptsBridgesBetweenPcieCards) {
    const std::string pairs =
        matrix(4, [](int i, int j) -> std::string { return i / 2 == j / 2 ? "NV12" : "SYS"; });
    for (const char* gpu : {"a100-pcie-80gb", "h100-pcie-80gb"}) {
        const json topology = json::parse(import_text(pairs, "topo.txt", with_gpu(gpu)).topology_json);
        EXPECT_EQ(topology["intra_node"], "nvlink_pairs");
        EXPECT_EQ(topology["gpu"], gpu);  // as the catalogue has it
    }
    // Bridges join two cards: four that all have NVLinks to each other are no such cards.
    const std::string all = matrix(4, [](int, int) -> std::string { return "NV4"; });
    EXPECT_THAT(error_of([&] { (void)import_text(all, "topo.txt", with_gpu("a100-pcie-80gb")); }).message(),
                HasSubstr("a100-pcie-80gb has pcie4, but topo.txt shows 4 NVLinks"));
}

TEST(TopologyImport, StripsTheTerminalsUnderline) {
    std::string text = matrix(2, [](int, int) -> std::string { return "NV12"; });
    text.insert(0, "\033[4m");
    EXPECT_EQ(import_text(text, "topo.txt").figure("gpus_per_node"), 2);
}

TEST(TopologyImport, RefusesBrokenMatrices) {
    const auto error = [](const std::string& text) {
        return error_of([&] { (void)import_text(text, "topo.txt"); });
    };
    const std::string good = matrix(2, [](int, int) -> std::string { return "NV4"; });
    std::string wrong = good;
    wrong.replace(wrong.rfind("NV4"), 3, "NVX");
    EXPECT_EQ(error(wrong).place(), (ErrorPlace{"topo.txt", "line 3: GPU1, column GPU0"}));
    wrong = good;
    wrong.replace(wrong.rfind("NV4"), 3, "SYS");
    EXPECT_THAT(error(wrong).message(), HasSubstr("GPU1 to GPU0 is SYS, but GPU0 to GPU1 is NV4 (line 2)"));
    EXPECT_THAT(error(good.substr(0, good.rfind("GPU1"))).message(), HasSubstr("GPU1 has no row"));
    wrong = good;
    wrong.replace(wrong.find(" X "), 3, "SYS");
    EXPECT_THAT(error(wrong).message(), HasSubstr("to itself GPU0 has X"));
}

TEST(TopologyImport, NamesTheCommandToRun) {
    const Error error = error_of([] { (void)import_file("topo/smi_list_not_topo.txt"); });
    EXPECT_THAT(error.message(), HasSubstr("nvidia-smi -L"));
    EXPECT_THAT(error.hint(), HasSubstr("nvidia-smi topo -m"));
}

TEST(NcclTopologyImport, ReadsSwitchesAndAdapters) {
    const Import import = import_file("nccl/hopper_nvswitch_topo.xml", with_gpu("h100-sxm-80gb"));
    EXPECT_EQ(import.kind, ImportKind::nccl_topology);
    EXPECT_EQ(import.figure("nvlinks_per_gpu"), 18);  // 5 + 4 + 5 + 4 to four switches
    EXPECT_EQ(import.figure("rails"), 8);             // eth0 at 25 Gb/s is none
    EXPECT_EQ(import.figure("rail_bytes_per_s"), 50e9);
    const json topology = json::parse(import.topology_json);
    EXPECT_EQ(topology["intra_node"], "nvswitch");
    EXPECT_EQ(topology["inter_node"]["kind"], "infiniband");
    EXPECT_EQ(topology["inter_node"]["bytes_per_second_per_gpu"], 50e9);
}

TEST(NcclTopologyImport, ReadsBridgedPairsAndChecksTheGpu) {
    const Import import = import_file("nccl/ampere_pairs_topo.xml", with_gpu("a100-sxm-80gb"));
    EXPECT_EQ(json::parse(import.topology_json)["intra_node"], "nvlink_pairs");
    EXPECT_EQ(json::parse(import.topology_json)["inter_node"]["kind"], "ethernet");
    EXPECT_EQ(json::parse(import.topology_json)["inter_node"]["bytes_per_second_per_gpu"], 12.5e9 / 4);
    EXPECT_THAT(error_of([] {
                    (void)import_file("nccl/ampere_pairs_topo.xml", with_gpu("h100-sxm-80gb"));
                }).message(),
                HasSubstr("compute capability 90, but nccl/ampere_pairs_topo.xml shows sm 80"));
}

TEST(NcclTopologyImport, RefusesWithTheLine) {
    const auto error = [](const std::string& text) {
        return error_of([&] { (void)import_text(text, "t.xml"); });
    };
    EXPECT_THAT(error("<system version=\"1\">\n<cpu>\n").message(), HasSubstr("not XML"));
    EXPECT_THAT(error("<system version=\"1\"></system>").message(), HasSubstr("no <gpu>"));
    EXPECT_EQ(error("<system>\n<gpu dev=\"0\">\n<nvlink target=\"1\" count=\"many\"/></gpu></system>")
                  .place()
                  .pointer,
              "line 3: <nvlink>");
    EXPECT_THAT(error("<other/>").message(), HasSubstr("neither <system> nor <graphs>"));
}

TEST(NcclGraphImport, GivesExactRingsAndChannelRates) {
    const Import import = import_file("nccl/pairs_graph.xml");
    EXPECT_EQ(import.kind, ImportKind::nccl_graph);
    EXPECT_EQ(import.figure("ring.channels"), 2);
    EXPECT_EQ(import.figure("ring.intra_bytes_per_s"), 24e9);
    EXPECT_EQ(import.figure("ring.inter_bytes_per_s"), 20e9);
    const json graphs = json::parse(import.calibration_json)["graphs"];
    ASSERT_EQ(graphs.size(), 1U);  // the graph without channels is an algorithm that the machine hasn't got
    EXPECT_EQ(graphs[0]["pattern"], "ring");
    EXPECT_EQ(graphs[0]["order"][1]["gpus"], (json{0, 3, 2, 1}));
    EXPECT_EQ(graphs[0]["channel_intra_bytes_per_s"], 12e9);
}

TEST(NcclGraphImport, RefusesMissingChannels) {
    const Error error = error_of([] {
        (void)import_text(
            "<graphs version=\"1\">\n<graph id=\"0\" pattern=\"4\" "
            "nchannels=\"2\"><channel/></graph></graphs>",
            "g.xml");
    });
    EXPECT_THAT(error.message(), HasSubstr("nchannels is 2, but there are 1"));
    EXPECT_EQ(error.place().pointer, "line 2: <graph>");
}

}  // namespace
}  // namespace zeroplan
