#include "zeroplan/gui/link_classes.hpp"

#include <gtest/gtest.h>

namespace zeroplan::gui {
namespace {

// As plan_now() leaves it: real presets, so that names, rates and sources are what users see.
std::shared_ptr<const Planned> planned(const std::string& cluster, const std::string& what_if = "{}") {
    ScenarioRequest request;
    request.text = R"({"model": {"preset": "gpt2"}, "training": {"compute_dtype": "fp16"}, "cluster": )" +
                   cluster + R"(, "what_if": )" + what_if + "}";
    const PlanOutcome outcome = plan_now(request);
    if (outcome.error) throw *outcome.error;
    return outcome.planned;
}

std::string rate(const std::vector<LinkClass>& classes, LinkKind kind) {
    const LinkClass* one = find_class(classes, kind);
    return one == nullptr ? "none" : (one->name + ": " + one->rate).toStdString();
}

TEST(LinkClasses, OfAnNvSwitchNode) {
    const auto classes = link_classes(*planned(R"({"topology": "dgx-h100", "nodes": 2})"), {});
    EXPECT_EQ(rate(classes, LinkKind::gpu), "NVLink 4: 450 GB/s a GPU");
    EXPECT_EQ(rate(classes, LinkKind::pcie), "PCIe to the host: 64 GB/s a GPU");
    EXPECT_EQ(rate(classes, LinkKind::nic), "InfiniBand: 50 GB/s a GPU");
    EXPECT_EQ(rate(classes, LinkKind::leaf), "none");
    EXPECT_TRUE(find_class(classes, LinkKind::nic)
                    ->description.closing.startsWith("Source: 8 × 400 Gb/s a node for 8 GPUs"));
}

TEST(LinkClasses, OfBridgedPairs) {
    const auto classes = link_classes(*planned(R"({"topology": "h100-pcie"})"), {});
    EXPECT_EQ(rate(classes, LinkKind::pcie), "PCIe 5: 64 GB/s a GPU");
    EXPECT_EQ(rate(classes, LinkKind::gpu), "none");
    EXPECT_TRUE(rate(classes, LinkKind::bridge).starts_with("NVLink bridge: "));
    EXPECT_EQ(rate(classes, LinkKind::nic), "none");  // one node
}

TEST(LinkClasses, OfProcessesOfThisMachine) {
    ScenarioRequest request;
    request.text =
        R"({"model": {"preset": "tutorial-mlp"}, "cluster": {"topology": "host", "gpus_used": 4}})";
    const auto classes = link_classes(*plan_now(request).planned, {});
    EXPECT_EQ(rate(classes, LinkKind::gpu), "Shared memory: 5 GB/s a process");
    EXPECT_EQ(classes.size(), 1U);
}

TEST(LinkClasses, OfATreeTellWhatLeavesItsSwitches) {
    // 8 nodes below a leaf, 8 NICs of 50 GB/s each: 3200 GB/s, of which half goes up; 4 such, a quarter of
    // it.
    const auto classes = link_classes(
        *planned(R"({"topology": "dgx-h100", "nodes": 64})",
                 R"({"fabric": {"kind": "fat_tree", "nodes_per_leaf": 8, "leaf_oversubscription": 2,
                                "leaves_per_pod": 4, "pod_oversubscription": 4}})"),
        {});
    EXPECT_EQ(rate(classes, LinkKind::leaf), "Leaf uplink: 1.6 TB/s, 2 to 1");
    EXPECT_EQ(rate(classes, LinkKind::pod), "Pod uplink: 1.6 TB/s, 4 to 1");
    const auto open = link_classes(
        *planned(
            R"({"topology": "dgx-h100", "nodes": 64})",
            R"({"fabric": {"kind": "rail_optimised", "nodes_per_leaf": 32, "leaf_oversubscription": 1}})"),
        {});
    EXPECT_EQ(rate(open, LinkKind::leaf), "Rail uplink: 1 to 1, doesn't block");
}

TEST(LinkClasses, TakeTheLoadOfTheFullest) {
    const std::vector<LinkLoad> loads{{"nvlink4", 16, 370e9, 37e9, 0.1},
                                      {"nic", 15, 50e9, 5e9, 0.1},
                                      {"nic at 0.5", 1, 25e9, 5e9, 0.2},
                                      {"torus link, fullest", 3, 1e9, 1e9, 0.9}};
    const auto classes = link_classes(*planned(R"({"topology": "dgx-h100", "nodes": 2})",
                                               R"({"fabric": {"kind": "torus", "dimensions": [2]}})"),
                                      loads);
    EXPECT_EQ(find_class(classes, LinkKind::gpu)->utilisation, 0.1);
    EXPECT_EQ(find_class(classes, LinkKind::nic)->utilisation, 0.2);
    EXPECT_EQ(find_class(classes, LinkKind::torus)->utilisation, 0.9);
    EXPECT_EQ(find_class(classes, LinkKind::pcie)->utilisation, std::nullopt);
    EXPECT_EQ(rate(classes, LinkKind::torus), "Torus link: 400 GB/s each way");  // one neighbour, all 8 NICs
}

TEST(RateWords, AreInGigaOrTerabytes) {
    EXPECT_EQ(rate_words(6.25e9).toStdString(), "6.25 GB/s");
    EXPECT_EQ(rate_words(1.8e12).toStdString(), "1.8 TB/s");
}

}  // namespace
}  // namespace zeroplan::gui
