#include "zeroplan/gui/topology_view.hpp"

#include <gtest/gtest.h>

#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include "zeroplan/gui/picture.hpp"

namespace zeroplan::gui {
namespace {

class TopologyViewTest : public testing::Test {
protected:
    void show(const char* cluster, const char* what_if = "{}", const std::vector<LinkLoad>& loads = {}) {
        ScenarioRequest request;
        request.text =
            std::string(R"({"model": {"preset": "gpt2"}, "training": {"zero_stage": 3}, "cluster": )") +
            cluster + R"(, "what_if": )" + what_if + "}";
        const PlanOutcome outcome = plan_now(request);
        ASSERT_FALSE(outcome.error) << outcome.error->message();
        view.resize(900, 600);
        view.set_topology(topology_of(*outcome.planned, loads));
        view.grab();
    }
    QPoint middle_of(std::uint64_t rank) {
        for (const DrawnBox& box : view.drawing().boxes)
            if (box.role == BoxRole::gpu && box.rank == rank) return box.rect.center().toPoint();
        return {};
    }
    QPoint middle_of_node(std::uint64_t node) {
        for (const DrawnBox& box : view.drawing().boxes)
            if (box.role == BoxRole::node && box.node == node)
                return (box.rect.bottomLeft() + QPointF(5, -4)).toPoint();
        return {};
    }
    TopologyView view;
};

TEST_F(TopologyViewTest, HoveringSaysWhoIsThere) {
    show(R"({"topology": "dgx-h100", "nodes": 4})", R"({"stragglers": [{"rank": 5, "factor": 0.8}]})");
    const auto said = view.describe_at(middle_of(5));
    ASSERT_TRUE(said);
    EXPECT_EQ(said->heading.toStdString(), "rank 5");
    EXPECT_TRUE(plain_text(*said).contains("data-parallel rank: 5 of 32"));
    EXPECT_EQ(said->closing.toStdString(), "Rank 5 computes at 0.8 of its speed.");
    EXPECT_TRUE(plain_text(*view.describe_at(middle_of_node(3))).contains("ranks: 24 to 31"));
}

TEST_F(TopologyViewTest, HoveringALinkSaysItsFiguresAndTheirSource) {
    show(R"({"topology": "dgx-h100", "nodes": 4})", "{}", {{"nic", 32, 50e9, 5e9, 0.25}});
    for (const DrawnLabel& label : view.drawing().labels) {
        if (label.link != LinkKind::nic) continue;
        const QString said = plain_text(*view.describe_at(label.rect.center()));
        EXPECT_TRUE(said.contains("50 GB/s a GPU"));
        EXPECT_TRUE(said.contains("25 %"));
        EXPECT_TRUE(said.contains("Source: 8 × 400 Gb/s"));
        return;
    }
    FAIL() << "the network has no label";
}

TEST_F(TopologyViewTest, ClicksAndKeysSelectRanks) {
    show(R"({"topology": "dgx-h100", "nodes": 4})");
    QSignalSpy selected(&view, &TopologyView::rank_selected);
    QTest::mouseClick(&view, Qt::LeftButton, {}, middle_of(6));
    EXPECT_EQ(view.selected_rank(), 6U);
    QTest::mouseClick(&view, Qt::LeftButton, {}, middle_of_node(2));
    EXPECT_EQ(view.selected_rank(), 16U);
    EXPECT_FALSE(middle_of(16).isNull());
    QTest::keyClick(&view, Qt::Key_PageDown);
    EXPECT_EQ(view.selected_rank(), 24U);
    QTest::keyClick(&view, Qt::Key_Left);
    EXPECT_EQ(view.selected_rank(), 23U);
    QTest::keyClick(&view, Qt::Key_End);
    QTest::keyClick(&view, Qt::Key_Right);
    EXPECT_EQ(view.selected_rank(), 31U);
    EXPECT_EQ(selected.count(), 5);
}

TEST_F(TopologyViewTest, SaysAllItDrawsToWhoCantSee) {
    show(R"({"topology": "dgx-h100", "nodes": 4})", "{}", {{"nic", 32, 50e9, 5e9, 0.25}});
    EXPECT_EQ(view.accessibleName().toStdString(), "Cluster");
    for (const char* part : {"dgx-h100, 32 GPUs, 4 nodes", "rank 0", "NVLink 4: 450 GB/s a GPU",
                             "InfiniBand: 50 GB/s a GPU, busy 25 % of the step"})
        EXPECT_TRUE(view.accessibleDescription().contains(part)) << part;
}

TEST_F(TopologyViewTest, IsAPictureInBothFormats) {
    show(R"({"topology": "gb200-nvl72", "nodes": 2})");
    QTemporaryDir folder;
    for (const char* name : {"a.png", "a.svg"}) {
        write_picture(view, folder.filePath(name));
        EXPECT_GT(QFileInfo(folder.filePath(name)).size(), 5000) << name;
    }
}

TEST_F(TopologyViewTest, IsAsQuickOnSixteenThousandGpus) {
    show(R"({"topology": "dgx-h100", "nodes": 2048})",
         R"({"fabric": {"kind": "torus", "dimensions": [16, 16, 8]}})");
    EXPECT_LT(view.drawing().boxes.size() + view.drawing().links.size(), 400U);
    view.select_rank(16'000);
    EXPECT_FALSE(middle_of(16'000).isNull());
}

}  // namespace
}  // namespace zeroplan::gui
