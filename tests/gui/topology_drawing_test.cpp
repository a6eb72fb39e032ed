#include "zeroplan/gui/topology_drawing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace zeroplan::gui {
namespace {

const QRectF room(0, 20, 940, 640);
constexpr double line = 14;

Topology topology(std::uint64_t nodes, std::uint64_t per_node, IntraNode intra = IntraNode::nvswitch) {
    Topology made;
    made.cluster.nodes = nodes;
    made.cluster.gpus_per_node = per_node;
    made.cluster.gpus_used = nodes * per_node;
    made.cluster.intra_node = intra;
    made.degrees.data = nodes * per_node;
    made.links = {{LinkKind::pcie, "PCIe", "", {}, {}}};
    if (intra == IntraNode::nvswitch) made.links.push_back({LinkKind::gpu, "NVLink 4", "", {}, {}});
    if (intra == IntraNode::nvlink_pairs)
        made.links.push_back({LinkKind::bridge, "NVLink bridge", "", {}, {}});
    if (nodes > 1) made.links.push_back({LinkKind::nic, "InfiniBand", "", {}, {}});
    return made;
}

std::vector<DrawnBox> of_role(const TopologyDrawing& drawing, BoxRole role) {
    std::vector<DrawnBox> found;
    for (const DrawnBox& box : drawing.boxes)
        if (box.role == role) found.push_back(box);
    return found;
}

std::ptrdiff_t links(const TopologyDrawing& drawing, LinkKind kind) {
    return std::count_if(drawing.links.begin(), drawing.links.end(),
                         [&](const DrawnLink& link) { return link.link == kind; });
}

void expect_apart_and_inside(const TopologyDrawing& drawing, const std::string& what) {
    const auto solid = [](const DrawnBox& box) {
        return box.role != BoxRole::frame && box.role != BoxRole::cells && box.role != BoxRole::tensor_group;
    };
    for (std::size_t i = 0; i < drawing.boxes.size(); ++i) {
        const DrawnBox& a = drawing.boxes[i];
        EXPECT_TRUE(room.contains(a.rect)) << what << ": " << a.text.toStdString();
        for (std::size_t k = 0; k < i; ++k)
            EXPECT_FALSE(solid(a) && solid(drawing.boxes[k]) && a.rect.intersects(drawing.boxes[k].rect))
                << what << ": " << a.text.toStdString() << " on " << drawing.boxes[k].text.toStdString();
    }
    for (const DrawnLabel& label : drawing.labels)
        for (const DrawnLabel& other : drawing.labels)
            EXPECT_TRUE(label == other || !label.rect.intersects(other.rect)) << what;
}

FabricSpec tree(FabricKind kind, std::uint64_t nodes_per_leaf, std::uint64_t leaves_per_pod = 0) {
    FabricSpec fabric{kind, nodes_per_leaf, 2, leaves_per_pod, 2, {}, 0};
    return fabric;
}

Topology on_fabric(std::uint64_t nodes, const FabricSpec& fabric) {
    Topology made = topology(nodes, 8);
    made.what_if.fabric = fabric;
    made.sites = place_jobs(made.what_if, nodes, 0);
    made.links.push_back({LinkKind::leaf, "Leaf uplink", "", {}, {}});
    made.links.push_back({LinkKind::pod, "Pod uplink", "", {}, {}});
    made.links.push_back({LinkKind::torus, "Torus link", "", {}, {}});
    return made;
}

TEST(TopologyDrawing, OneNodeStandsAlone) {
    const TopologyDrawing drawing = topology_drawing(topology(1, 8), room, line, 3);
    EXPECT_EQ(of_role(drawing, BoxRole::gpu).size(), 8U);
    EXPECT_EQ(of_role(drawing, BoxRole::bus).size(), 1U);
    EXPECT_TRUE(of_role(drawing, BoxRole::nic).empty());
    EXPECT_TRUE(of_role(drawing, BoxRole::fabric_switch).empty());
    EXPECT_TRUE(drawing.zoom.empty());
    EXPECT_EQ(links(drawing, LinkKind::gpu), 8);
    EXPECT_EQ(links(drawing, LinkKind::pcie), 8);
    // One row, evenly spaced, ranks in order.
    const auto gpus = of_role(drawing, BoxRole::gpu);
    const double step = gpus[1].rect.left() - gpus[0].rect.left();
    for (std::size_t i = 0; i < 8; ++i) {
        EXPECT_EQ(gpus[i].rank, i);
        EXPECT_EQ(gpus[i].rect.top(), gpus[0].rect.top());
        EXPECT_NEAR(gpus[i].rect.left(), gpus[0].rect.left() + step * static_cast<double>(i), 1e-6);
    }
}

TEST(TopologyDrawing, ShowsTheNodeOfTheRank) {
    const TopologyDrawing drawing = topology_drawing(topology(4, 8), room, line, 21);
    const auto gpus = of_role(drawing, BoxRole::gpu);
    EXPECT_EQ(gpus.front().rank, 16U);
    EXPECT_EQ(gpus.front().text.toStdString(), "16");
    EXPECT_EQ(of_role(drawing, BoxRole::frame).front().node, 2U);
    EXPECT_EQ(of_role(drawing, BoxRole::node).size(), 4U);
    EXPECT_EQ(of_role(drawing, BoxRole::nic).size(), 8U);
    // The cone begins at the node in small.
    ASSERT_EQ(drawing.zoom.size(), 4U);
    EXPECT_EQ(drawing.zoom[0], of_role(drawing, BoxRole::node)[2].rect.bottomLeft());
}

TEST(TopologyDrawing, ANodeHasTheNicsThatItStates) {
    Topology four = topology(2, 8);
    four.cluster.inter_node.nics_per_node = 4;
    four.what_if.slow_links = {{SlowLinkKind::nic, 3, 0.5}};
    const TopologyDrawing drawing = topology_drawing(four, room, line, 0);
    const auto nics = of_role(drawing, BoxRole::nic), gpus = of_role(drawing, BoxRole::gpu);
    ASSERT_EQ(nics.size(), 4U);
    EXPECT_EQ(links(drawing, LinkKind::nic), 2 + 4);  // of the nodes, and of the one drawn whole
    EXPECT_EQ(links(drawing, LinkKind::pcie), 4 + 8);
    for (std::size_t i = 0; i < 4; ++i) {  // two GPUs share one, which stands between them
        EXPECT_EQ(nics[i].rank, 2 * i);
        EXPECT_EQ(nics[i].factor, i == 1 ? 0.5 : 1);
        const double middle = (gpus[2 * i].rect.center().x() + gpus[2 * i + 1].rect.center().x()) / 2;
        EXPECT_NEAR(nics[i].rect.center().x(), middle, 1e-6);
    }
    expect_apart_and_inside(drawing, "4 NICs");
    four.cluster.inter_node.nics_per_node = 16;
    const TopologyDrawing more = topology_drawing(four, room, line, 0);
    ASSERT_EQ(of_role(more, BoxRole::nic).size(), 16U);
    EXPECT_EQ(of_role(more, BoxRole::nic)[7].rank, 3U);
    EXPECT_EQ(of_role(more, BoxRole::nic)[7].factor, 0.5);
    expect_apart_and_inside(more, "16 NICs");
}

TEST(TopologyDrawing, AMeshJoinsThePairsThatItsTopologyStates) {
    Topology mesh = topology(1, 4);
    mesh.cluster.intra_node = IntraNode::nvlink_mesh;
    mesh.mesh = {{0, 1, 2}, {0, 3, 1}, {2, 3, 1}};
    mesh.what_if.slow_links = {{SlowLinkKind::gpu, 2, 0.5}};
    const TopologyDrawing drawing = topology_drawing(mesh, room, line, 0);
    EXPECT_TRUE(of_role(drawing, BoxRole::bus).empty());
    EXPECT_EQ(links(drawing, LinkKind::gpu), 3 * 4);  // down, across and up of four NVLinks
    const auto gpus = of_role(drawing, BoxRole::gpu);
    const auto joins = [&](std::size_t a, std::size_t b) {  // lines across from below one to below the other
        return std::count_if(drawing.links.begin(), drawing.links.end(), [&](const DrawnLink& link) {
            const auto below = [](const QPointF& end, const QRectF& gpu) {
                return end.x() > gpu.left() && end.x() < gpu.right() && end.y() > gpu.bottom();
            };
            return link.link == LinkKind::gpu && link.from.y() == link.to.y() &&
                   below(link.from, gpus[a].rect) && below(link.to, gpus[b].rect);
        });
    };
    EXPECT_EQ(joins(0, 1), 2);
    EXPECT_EQ(joins(0, 3), 1);
    EXPECT_EQ(joins(2, 3), 1);
    EXPECT_EQ(joins(1, 2), 0);
    EXPECT_EQ(std::count_if(drawing.links.begin(), drawing.links.end(),
                            [](const DrawnLink& link) { return link.factor == 0.5; }),
              3);  // of 2 and 3
    for (const DrawnLink& link : drawing.links) {
        EXPECT_TRUE(of_role(drawing, BoxRole::frame).front().rect.contains(link.from));
        EXPECT_TRUE(of_role(drawing, BoxRole::frame).front().rect.contains(link.to));
    }
    mesh.mesh.clear();  // a bar where the topology doesn't say
    mesh.what_if = {};
    EXPECT_EQ(of_role(topology_drawing(mesh, room, line, 0), BoxRole::bus).size(), 1U);
}

TEST(TopologyDrawing, BridgesJoinTheCards2iAnd2iPlus1) {
    const TopologyDrawing drawing = topology_drawing(topology(1, 8, IntraNode::nvlink_pairs), room, line, 0);
    const auto bridges = of_role(drawing, BoxRole::bus), gpus = of_role(drawing, BoxRole::gpu);
    ASSERT_EQ(bridges.size(), 4U);
    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(bridges[i].link, LinkKind::bridge);
        const double middle = (gpus[2 * i].rect.center().x() + gpus[2 * i + 1].rect.center().x()) / 2;
        EXPECT_NEAR(bridges[i].rect.center().x(), middle, 1e-6);
    }
    EXPECT_EQ(links(drawing, LinkKind::bridge), 8);
    EXPECT_EQ(links(drawing, LinkKind::gpu), 0);
}

TEST(TopologyDrawing, ManyGpusStandInFullRows) {
    const auto gpus = of_role(topology_drawing(topology(2, 72), room, line, 0), BoxRole::gpu);
    ASSERT_EQ(gpus.size(), 72U);
    std::map<double, int> rows;
    for (const DrawnBox& gpu : gpus) ++rows[gpu.rect.top()];
    EXPECT_EQ(rows.size(), 6U);
    for (const auto& [top, count] : rows) EXPECT_EQ(count, 12);
}

TEST(TopologyDrawing, GpusWithoutARankAreThereButIdle) {
    Topology some = topology(1, 8);
    some.cluster.gpus_used = 3;
    const TopologyDrawing drawing = topology_drawing(some, room, line, 0);
    EXPECT_EQ(of_role(drawing, BoxRole::gpu).size(), 3U);
    EXPECT_EQ(of_role(drawing, BoxRole::idle_gpu).size(), 5U);
}

TEST(TopologyDrawing, TensorGroupsAreFramedAndStagesColoured) {
    Topology split = topology(2, 8);
    split.degrees = {.tensor = 4, .context = 1, .data = 2, .stages = 2, .shard_group = 2};
    const TopologyDrawing drawing = topology_drawing(split, room, line, 8);
    EXPECT_EQ(of_role(drawing, BoxRole::tensor_group).size(), 2U);
    for (const DrawnBox& gpu : of_role(drawing, BoxRole::gpu)) EXPECT_EQ(gpu.colour, 1U);
    EXPECT_EQ(of_role(drawing, BoxRole::gpu)[5].details, (QStringList{"tp 1", "pp 1", "dp 1"}));
    EXPECT_EQ(drawing.legend, (std::vector<std::uint64_t>{0, 1}));
}

TEST(TopologyDrawing, LeafSwitchesStandAboveTheirNodes) {
    const TopologyDrawing drawing =
        topology_drawing(on_fabric(8, tree(FabricKind::fat_tree, 4)), room, line, 0);
    const auto switches = of_role(drawing, BoxRole::fabric_switch);
    ASSERT_EQ(switches.size(), 3U);  // a spine bar and two leaves
    EXPECT_EQ(switches[1].text.toStdString(), "leaf 0");
    const auto nodes = of_role(drawing, BoxRole::node);
    ASSERT_EQ(nodes.size(), 8U);
    for (std::size_t i = 0; i < 8; ++i) {
        const QRectF& leaf = switches[1 + i / 4].rect;
        EXPECT_GE(nodes[i].rect.left(), leaf.left());
        EXPECT_LE(nodes[i].rect.right(), leaf.right());
        EXPECT_GT(nodes[i].rect.top(), leaf.bottom());
    }
    EXPECT_EQ(links(drawing, LinkKind::leaf), 2);
    EXPECT_EQ(links(drawing, LinkKind::nic), 8 + 8);  // of the nodes, and of the one drawn whole
}

TEST(TopologyDrawing, RailsHaveASwitchForEachNic) {
    const TopologyDrawing drawing =
        topology_drawing(on_fabric(4, tree(FabricKind::rail_optimised, 2)), room, line, 0);
    EXPECT_EQ(of_role(drawing, BoxRole::fabric_switch).size(), 1U + 2 * 8);
    EXPECT_EQ(links(drawing, LinkKind::nic), 4 * 8 + 8);
    EXPECT_EQ(links(drawing, LinkKind::leaf), 2 * 8);
}

TEST(TopologyDrawing, ATorusIsWiredToItsNeighbours) {
    FabricSpec torus;
    torus.kind = FabricKind::torus;
    torus.dimensions = {4, 2};
    const TopologyDrawing drawing = topology_drawing(on_fabric(8, torus), room, line, 0);
    EXPECT_EQ(of_role(drawing, BoxRole::node).size(), 8U);
    EXPECT_TRUE(of_role(drawing, BoxRole::fabric_switch).empty());
    // Rows of 4 close: 3 between, out at both ends. Columns of 2 are joined once.
    EXPECT_EQ(links(drawing, LinkKind::torus), 2 * 5 + 4);
}

TEST(TopologyDrawing, PlacementSaysWhoIsWhere) {
    Topology spread = on_fabric(2, tree(FabricKind::fat_tree, 4));
    spread.what_if.placement.kind = PlacementKind::spread;
    spread.sites = {8, {0, 4}, {1}};
    const TopologyDrawing drawing = topology_drawing(spread, room, line, 8);
    EXPECT_EQ(of_role(drawing, BoxRole::node).size(), 2U);
    EXPECT_EQ(of_role(drawing, BoxRole::other_node).size(), 1U);
    EXPECT_EQ(of_role(drawing, BoxRole::free_node).size(), 5U);
    EXPECT_GT(drawing.zoom[0].x(), room.center().x());  // node 1 is on the second leaf
}

TEST(TopologyDrawing, WhatIsSlowSaysSo) {
    Topology slow = topology(2, 8);
    slow.what_if.stragglers = {{5, 0.8}};
    slow.what_if.slow_links = {{SlowLinkKind::nic, 3, 0.5}, {SlowLinkKind::gpu, 2, 0.25}};
    const TopologyDrawing drawing = topology_drawing(slow, room, line, 0);
    EXPECT_EQ(of_role(drawing, BoxRole::gpu)[5].factor, 0.8);
    EXPECT_EQ(of_role(drawing, BoxRole::nic)[3].factor, 0.5);
    const auto slowed = [&](LinkKind kind) {
        return std::count_if(drawing.links.begin(), drawing.links.end(),
                             [&](const DrawnLink& link) { return link.link == kind && link.factor < 1; });
    };
    EXPECT_EQ(slowed(LinkKind::nic), 2);  // in the node, and of the node in small
    EXPECT_EQ(slowed(LinkKind::gpu), 1);
}

TEST(TopologyDrawing, OnPcieAloneAGpusLinkIsTheOneToTheHost) {
    Topology slow = topology(1, 8, IntraNode::pcie);
    slow.what_if.slow_links = {{SlowLinkKind::gpu, 2, 0.25}};
    const TopologyDrawing drawing = topology_drawing(slow, room, line, 0);
    ASSERT_EQ(links(drawing, LinkKind::pcie), 8);
    EXPECT_EQ(drawing.links[2].factor, 0.25);
    EXPECT_EQ(drawing.links[3].factor, 1);
}

TEST(TopologyDrawing, NothingStandsOnAnotherWhateverTheSize) {
    for (const std::uint64_t per_node : {1U, 8U, 16U, 72U})
        for (const std::uint64_t nodes : {1U, 2U, 12U, 2048U})
            expect_apart_and_inside(topology_drawing(topology(nodes, per_node), room, line, 0),
                                    std::to_string(nodes) + " x " + std::to_string(per_node));
    for (const std::uint64_t nodes : {4U, 64U, 2048U}) {
        for (const FabricKind kind : {FabricKind::fat_tree, FabricKind::rail_optimised})
            expect_apart_and_inside(topology_drawing(on_fabric(nodes, tree(kind, 4)), room, line, 0), "tree");
        expect_apart_and_inside(
            topology_drawing(on_fabric(nodes, tree(FabricKind::fat_tree, 4, 4)), room, line, 0), "pods");
    }
    for (const auto& sizes : std::vector<std::vector<std::uint64_t>>{{16}, {4, 4}, {16, 16, 8}, {2, 2, 2}}) {
        FabricSpec torus;
        torus.kind = FabricKind::torus;
        torus.dimensions = sizes;
        expect_apart_and_inside(topology_drawing(on_fabric(torus_nodes(torus), torus), room, line, 0),
                                "torus");
    }
}

TEST(TopologyDrawing, SixteenThousandGpusAreAsFewBoxesAsThereIsRoomFor) {
    const TopologyDrawing drawing =
        topology_drawing(on_fabric(2048, tree(FabricKind::fat_tree, 32, 8)), room, line, 16'383);
    EXPECT_LT(drawing.boxes.size(), 100U);
    const auto more = of_role(drawing, BoxRole::more);
    EXPECT_EQ(more.back().text.toStdString(), "× 6");
    EXPECT_EQ(more.back().details, QStringList{"more pods"});
    EXPECT_EQ(of_role(drawing, BoxRole::frame).front().node, 2047U);
}

TEST(TopologyTitle, SaysWhatIsDrawn) {
    Topology one = on_fabric(8, tree(FabricKind::fat_tree, 4));
    one.cluster.topology = "dgx-h100";
    EXPECT_EQ(topology_title(one).toStdString(),
              "dgx-h100, 64 GPUs, 8 nodes, leaf switches of 4 nodes, oversubscribed 2 to 1, the job packed");
    EXPECT_EQ(topology_title(topology(1, 1)).toStdString(), "1 GPU");
}

// 64 nodes of 8: rank 77 is on node 9 of the first layer of 16, node 40 in the third one.
TEST(TopologyDrawing, MarksNodesWithSomethingSlowAlsoInFoldedLayers) {
    Topology asked = topology(64, 8);
    asked.what_if.fabric = FabricSpec{FabricKind::torus, 0, 1, 0, 1, {4, 4, 4}, 0};
    asked.what_if.stragglers = {{77, 0.8}};
    asked.what_if.slow_links = {{SlowLinkKind::node, 40, 0.5}};
    const TopologyDrawing drawing = topology_drawing(asked, room, line, 0);
    for (const DrawnBox& box : of_role(drawing, BoxRole::node))
        EXPECT_EQ(box.factor, box.node == 9U ? 0.8 : 1) << box.text.toStdString();
    const auto more = of_role(drawing, BoxRole::more);
    ASSERT_EQ(more.size(), 1U);
    EXPECT_EQ(more[0].slow, 1U);
    EXPECT_EQ(rank_worth_showing(asked, 0), 77U);
    EXPECT_EQ(rank_worth_showing(asked, 325), 325U);  // on node 40
    EXPECT_EQ(rank_worth_showing(topology(64, 8), 3), 3U);
}

TEST(TopologyDrawing, CountsSlowNodesBehindFoldedLeaves) {
    Topology asked = topology(512, 8);
    asked.what_if.fabric = tree(FabricKind::fat_tree, 4);
    asked.what_if.stragglers = {{9, 0.7}, {4080, 0.9}, {4081, 0.9}};  // nodes 1, 510, 510
    asked.what_if.slow_links = {{SlowLinkKind::nic, 4095, 0.5}};      // node 511
    const TopologyDrawing drawing = topology_drawing(asked, room, line, 0);
    for (const DrawnBox& box : of_role(drawing, BoxRole::node))
        EXPECT_EQ(box.factor, box.node == 1U ? 0.7 : 1) << box.text.toStdString();
    std::uint64_t slow = 0;
    for (const DrawnBox& box : of_role(drawing, BoxRole::more)) slow += box.slow;
    EXPECT_EQ(slow, 2U);
}

}  // namespace
}  // namespace zeroplan::gui
