// The built-in machines: topologies/*.json, file by file.
#include <algorithm>
#include <cctype>
#include <regex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "embedded_files.hpp"
#include "gpu_catalogue.hpp"
#include "json/cluster_json.hpp"
#include "zeroplan/io.hpp"
#include "zeroplan/plan.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class Topology : public testing::TestWithParam<embedded::File> {
protected:
    std::string name() const { return std::string(GetParam().name); }
    json file() const { return json::parse(GetParam().text); }
    ClusterSpec cluster() const { return read_cluster({{"topology", name()}}, {}); }
    /// The source of a figure: the entry that names it, or the object it stands in.
    std::string source_of(const std::string& figure) const;
};

/// The names in a key of "sources": "host.memory_bytes, host.cores" are two.
std::vector<std::string> names_in(const std::string& key) {
    std::vector<std::string> names;
    const std::regex comma(", ");
    std::copy(std::sregex_token_iterator(key.begin(), key.end(), comma, -1), std::sregex_token_iterator(),
              std::back_inserter(names));
    return names;
}

bool covers(const std::string& name, const std::string& figure) {
    return figure == name || figure.starts_with(name + ".");
}

std::string Topology::source_of(const std::string& figure) const {
    const json sources = file().at("sources");
    for (const auto& [key, source] : sources.items())
        for (const std::string& name : names_in(key))
            if (covers(name, figure)) return source;
    return "";
}

std::vector<std::string> figures_of(const json& file) {
    std::vector<std::string> figures;
    for (const auto& [key, value] : file.items()) {
        if (key == "name" || key == "description" || key == "provider" || key == "sources") continue;
        if (!value.is_object()) figures.push_back(key);
        if (value.is_object())
            for (const auto& [member, figure] : value.items()) figures.push_back(key + "." + member);
    }
    return figures;
}

TEST_P(Topology, IsNamedAsItsFileAndDescribed) {
    EXPECT_EQ(file().at("name"), name());
    EXPECT_GT(file().at("description").get<std::string>().size(), 20U);
    for (const char c : name())
        EXPECT_TRUE(std::islower(c) != 0 || std::isdigit(c) != 0 || c == '-' || c == '.') << name();
}

TEST_P(Topology, NamesAGpuOfTheCatalogue) {
    const std::vector<GpuSpec> gpus = gpu_catalogue();
    const auto named = [&](const GpuSpec& gpu) { return gpu.name == file().at("gpu"); };
    EXPECT_EQ(std::count_if(gpus.begin(), gpus.end(), named), 1) << file().at("gpu");
}

TEST_P(Topology, HasASourceForEveryFigureAndAFigureForEverySource) {
    const json sources = file().at("sources");
    const std::vector<std::string> figures = figures_of(file());
    // Three of the node, two of its network, five of its host; where GPUs share NICs, their number; what is
    // public of the fabric between nodes; which GPUs of a mesh are joined.
    std::size_t further = 0;
    for (const bool stated : {file().at("inter_node").contains("nics_per_node"), file().contains("fabric"),
                              file().contains("nvlink_mesh")})
        further += stated ? 1 : 0;
    EXPECT_EQ(figures.size(), 10 + further);
    for (const std::string& figure : figures) EXPECT_GT(source_of(figure).size(), 15U) << figure;
    for (const auto& [key, source] : sources.items())
        for (const std::string& name : names_in(key))
            EXPECT_TRUE(std::any_of(figures.begin(), figures.end(), [&](const std::string& figure) {
                return covers(name, figure);
            })) << name;
}

/// "4 × 100 Gb/s": what the source says the cards of a node carry together, shared by its GPUs.
TEST_P(Topology, GivesAGpuItsShareOfTheCardsThatTheSourceNames) {
    const ClusterSpec machine = cluster();
    if (machine.inter_node.kind == InterNodeKind::none) {
        EXPECT_EQ(machine.inter_node.bytes_per_s_per_gpu, 0);
        return;
    }
    const std::string source = source_of("inter_node.bytes_per_second_per_gpu");
    std::smatch cards;
    ASSERT_TRUE(std::regex_search(source, cards, std::regex("^(\\d+) × (\\d+) Gb/s"))) << source;
    const double bits_per_s = std::stod(cards[1]) * std::stod(cards[2]) * 1e9;
    EXPECT_DOUBLE_EQ(machine.inter_node.bytes_per_s_per_gpu,
                     bits_per_s / 8 / static_cast<double>(machine.gpus_per_node))
        << source;
    const std::uint64_t nics = std::stoull(cards[1]), stated = machine.inter_node.nics_per_node;
    EXPECT_EQ(stated, nics < machine.gpus_per_node ? nics : 0) << "several of a GPU are one to NCCL";
}

/// x16 of a generation, per direction, before encoding losses: 8, 16, 32 GT/s a lane.
double x16_rate(int generation) {
    return 16e9 * static_cast<double>(1 << (generation - 3));
}

TEST_P(Topology, GivesAGpuThePcieOfItsGeneration) {
    const ClusterSpec machine = cluster();
    const std::string source = source_of("host.pcie_bytes_per_second");
    std::smatch slot;
    if (!std::regex_search(source, slot, std::regex("^PCIe (\\d)\\.0 x16(?: shared by (\\d) GPUs)?"))) {
        EXPECT_THAT(source, testing::AnyOf(HasSubstr("no PCIe"), HasSubstr("there is no card"))) << source;
        return;
    }
    const double sharing = slot[2].matched ? std::stod(slot[2]) : 1;
    EXPECT_DOUBLE_EQ(machine.host.pcie_bytes_per_s, x16_rate(std::stoi(slot[1])) / sharing) << source;
    if (machine.gpu.link.starts_with("pcie")) {
        EXPECT_LE(machine.host.pcie_bytes_per_s, machine.gpu.link_bytes_per_s);
    }
}

TEST_P(Topology, PlansGpt2OnOneNodeAndOnTwo) {
    const char* dtype = cluster().gpu.bf16_flop_per_s > 0 ? "bf16" : "fp16";  // V100: no bf16
    const auto plan = [&](int nodes) {
        json scenario;
        scenario["model"] = {{"preset", "gpt2"}};
        scenario["training"] = {{"zero_stage", 2}, {"compute_dtype", dtype}};
        scenario["cluster"] = {{"topology", name()}, {"nodes", nodes}};
        return make_plan(resolve_scenario({"", scenario.dump(), {}}));
    };
    const std::uint64_t gpus = file().at("gpus_per_node");
    EXPECT_EQ(plan(1).scenario.cluster.gpus_used, gpus);
    EXPECT_EQ(plan(1).memory.verdict, Verdict::fits);
    if (cluster().inter_node.kind == InterNodeKind::none) {
        EXPECT_THROW(plan(2), Error);
        return;
    }
    EXPECT_EQ(plan(2).scenario.cluster.gpus_used, 2 * gpus);
}

INSTANTIATE_TEST_SUITE_P(Files, Topology, testing::ValuesIn(embedded::topologies()),
                         [](const testing::TestParamInfo<embedded::File>& file) {
                             std::string name(file.param.name);
                             std::replace_if(
                                 name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
                             return name;
                         });

struct Published {
    const char* name;
    std::uint64_t gpus;
    InterNodeKind kind;
    double gigabits_per_s_per_gpu, gib;
    std::uint64_t cores;
};

/// What the makers and the clouds publish, worked out by hand.
TEST(Topologies, HaveThePublishedFigures) {
    for (const Published& published : std::vector<Published>{
             {"p4d.24xlarge", 8, InterNodeKind::efa, 50, 1152, 48},            // 400 Gb/s, 96 vCPUs
             {"p5.48xlarge", 8, InterNodeKind::efa, 400, 2048, 96},            // 3200 Gb/s, 192 vCPUs
             {"p5en.48xlarge", 8, InterNodeKind::efa, 400, 2048, 96},          // 3200 Gb/s, 192 vCPUs
             {"a2-megagpu-16g", 16, InterNodeKind::ethernet, 6.25, 1360, 48},  // 100 Gb/s, 96 vCPUs
             {"a3-highgpu-8g", 8, InterNodeKind::ethernet, 100, 1872, 104},    // 4 cards of 200 Gb/s
             {"a3-megagpu-8g", 8, InterNodeKind::ethernet, 200, 1872, 104},    // 8 cards of 200 Gb/s
             {"nd-a100-v4", 8, InterNodeKind::infiniband, 200, 900, 96},
             {"nd-h100-v5", 8, InterNodeKind::infiniband, 400, 1900, 96},
             {"bm.gpu.h100.8", 8, InterNodeKind::roce, 400, 2048, 112},
             {"gb200-nvl72", 72, InterNodeKind::infiniband, 400, 36 * 480e9 / (1 << 30), 2592}}) {
        const ClusterSpec machine = read_cluster({{"topology", published.name}}, {});
        EXPECT_EQ(machine.gpus_per_node, published.gpus) << published.name;
        EXPECT_EQ(machine.inter_node.kind, published.kind) << published.name;
        EXPECT_DOUBLE_EQ(machine.inter_node.bytes_per_s_per_gpu * 8, published.gigabits_per_s_per_gpu * 1e9)
            << published.name;
        EXPECT_NEAR(static_cast<double>(machine.host.memory.count()) / (1 << 30), published.gib, 1)
            << published.name;
        EXPECT_EQ(machine.host.cores, published.cores) << published.name;
    }
}

}  // namespace
}  // namespace zeroplan
