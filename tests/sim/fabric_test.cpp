#include <gtest/gtest.h>

#include <fmt/format.h>

#include "core/cost/pipeline_plan.hpp"
#include "core/cost/random_program.hpp"
#include "core/cost/tiny_plan.hpp"
#include "fabric_links.hpp"
#include "sim/execute_graph.hpp"
#include "sim/sharded_step.hpp"
#include "zeroplan/io.hpp"
#include "zeroplan/simulate.hpp"
#include "zeroplan/what_if_io.hpp"

namespace zeroplan {
namespace {

using test::all_gather;
using test::on;
using test::work_buffers;

constexpr std::uint64_t elements = 4'000'000'000;  // 8 GB

Plan gathering(std::uint64_t nodes, std::uint64_t size = elements) {
    return test::test_plan(test::test_cluster(nodes), {{"step", 1, {on(Stream::gather, all_gather(size))}}},
                           work_buffers);
}

CollectiveCost cost_of(const Plan& plan) {
    return time_program(plan, 0).collectives.front().cost;
}

WhatIf on_leaves(std::uint64_t nodes, double ratio, Placement placement = {}) {
    WhatIf what_if;
    what_if.leaf_switches = {nodes, ratio};
    what_if.placement = std::move(placement);
    return what_if;
}

double step_time(const Plan& plan, const WhatIf& what_if) {
    const SimReport report = simulate(split_rank_groups(plan, rank_classes(plan, what_if)), what_if).step;
    double slowest = 0;
    for (const StepTimeline& group : report.rank_groups) slowest = std::max(slowest, group.step_time_s);
    return slowest;
}

TEST(WholeWeights, KeepProportions) {
    EXPECT_EQ(sim::whole_weights({8, 24}).weights, (std::vector<std::uint32_t>{1, 3}));
    EXPECT_DOUBLE_EQ(sim::whole_weights({8, 24}).per_unit, 1.0 / 8);
    EXPECT_EQ(sim::whole_weights({8, 12}).weights, (std::vector<std::uint32_t>{2, 3}));
    EXPECT_EQ(sim::whole_weights({1000}).weights, std::vector<std::uint32_t>{1});
    const sim::WholeWeights rounded = sim::whole_weights({1, 1e6});
    EXPECT_EQ(rounded.weights, (std::vector<std::uint32_t>{1, 256}));
    EXPECT_DOUBLE_EQ(rounded.per_unit, 256e-6);
}

TEST(LeafSwitches, HoldBackARingByTheEdgesThatCrossThem) {
    // Leaves of 2 nodes of 8 NICs of 50 GB/s, 4 to 1: 200 GB/s go up. Packed, an edge of 8 rails leaves a
    // leaf: 25 GB/s a rail. Spread, two do: 12.5 GB/s. Alone, NCCL's channels allow 48 GB/s.
    const Plan plan = gathering(4);
    const CollectiveCost cost = cost_of(plan);
    const double nic_bytes = cost.nic_weight * cost.unit_bytes;
    EXPECT_NEAR(step_time(plan, on_leaves(2, 4)), cost.start_s() + nic_bytes / 25e9, 1e-9);
    EXPECT_NEAR(step_time(plan, on_leaves(2, 4, {PlacementKind::spread, {}})),
                cost.start_s() + nic_bytes / 12.5e9, 1e-9);
    EXPECT_NEAR(step_time(plan, on_leaves(2, 4, {PlacementKind::list, {0, 2, 1, 3}})),
                cost.start_s() + nic_bytes / 12.5e9, 1e-9);
    // 2 to 1, packed: 50 GB/s a rail are enough; all on one leaf: nothing crosses.
    const double alone = cost.start_s() + nic_bytes / 48e9;
    EXPECT_NEAR(step_time(plan, on_leaves(2, 2)), alone, 1e-9);
    EXPECT_NEAR(step_time(plan, on_leaves(4, 100)), alone, 1e-9);
}

TEST(LeafSwitches, ThatAreNotOversubscribedChangeNothing) {
    const Plan plan = test::test_plan(
        test::test_cluster(4), {{"step", 1, test::sharded_step(8, 134'217'728, Stream::reduce, 10'000'000)}},
        work_buffers);
    const double without = step_time(plan, {});
    EXPECT_EQ(step_time(plan, on_leaves(2, 1, {PlacementKind::spread, {}})), without);
    double before = without;
    for (const double ratio : {1.5, 2.0, 4.0, 16.0}) {
        const double now = step_time(plan, on_leaves(2, ratio, {PlacementKind::spread, {}}));
        EXPECT_GE(now, before * (1 - 1e-9)) << ratio;
        before = now;
    }
    EXPECT_GT(before, 2 * without);
}

TEST(LeafSwitches, ShowTheLoadOfTheirUplinks) {
    const Plan plan = gathering(4);
    const WhatIf what_if = on_leaves(2, 4);
    const WhatIfStep report = simulate(plan, what_if);
    const LinkLoad& uplink = report.step.links.back();
    EXPECT_EQ(uplink.name, "leaf uplink, fullest");
    EXPECT_EQ(uplink.links, 2U);
    EXPECT_DOUBLE_EQ(uplink.bytes_per_s, 200e9);
    const CollectiveCost cost = cost_of(plan);
    EXPECT_NEAR(uplink.bytes, 8 * cost.nic_weight * cost.unit_bytes, 1);
    EXPECT_NEAR(uplink.utilisation, 1 - cost.start_s() / report.what_if.causes.back().step_time_s, 1e-6);
}

WhatIf on_fabric(FabricSpec fabric, Placement placement = {}) {
    WhatIf what_if;
    what_if.fabric = std::move(fabric);
    what_if.placement = std::move(placement);
    return what_if;
}

FabricSpec tree(FabricKind kind, std::uint64_t nodes, double ratio) {
    FabricSpec fabric;
    fabric.kind = kind;
    fabric.nodes_per_leaf = nodes;
    fabric.leaf_oversubscription = ratio;
    return fabric;
}

FabricSpec pods(std::uint64_t nodes, double ratio, std::uint64_t leaves, double pod_ratio) {
    FabricSpec fabric = tree(FabricKind::fat_tree, nodes, ratio);
    fabric.leaves_per_pod = leaves;
    fabric.pod_oversubscription = pod_ratio;
    return fabric;
}

FabricSpec torus(std::vector<std::uint64_t> dimensions, double link = 0) {
    FabricSpec fabric;
    fabric.kind = FabricKind::torus;
    fabric.dimensions = std::move(dimensions);
    fabric.link_bytes_per_s = link;
    return fabric;
}

/// Expects a ring of 4 nodes to get so much of each of its 8 rails; alone NCCL's channels allow 48 GB/s.
void expect_rail_rate(const WhatIf& what_if, double bytes_per_s) {
    const Plan plan = gathering(4);
    const CollectiveCost cost = cost_of(plan);
    EXPECT_NEAR(step_time(plan, what_if), cost.start_s() + cost.nic_weight * cost.unit_bytes / bytes_per_s,
                1e-9);
}

TEST(Fabrics, AreLeafSwitchesToo) {
    for (const PlacementKind kind : {PlacementKind::packed, PlacementKind::spread})
        EXPECT_EQ(step_time(gathering(4), on_fabric(tree(FabricKind::fat_tree, 2, 4), {kind, {}})),
                  step_time(gathering(4), on_leaves(2, 4, {kind, {}})));
    EXPECT_EQ(step_time(gathering(4), on_fabric({})), step_time(gathering(4), {}));
}

TEST(Fabrics, OfThreeLevelsHoldBackAtTheTighterOne) {
    // Leaves of a node, 2 to 1: 200 GB/s for an edge of 8 rails. Pods of two of them, 4 to 1: 100 GB/s.
    expect_rail_rate(on_fabric(pods(1, 2, 2, 1)), 25e9);
    expect_rail_rate(on_fabric(pods(1, 2, 2, 4)), 12.5e9);
    expect_rail_rate(on_fabric(pods(1, 2, 2, 4), {PlacementKind::list, {0, 2, 1, 3}}), 6.25e9);
    expect_rail_rate(on_fabric(pods(1, 2, 4, 100)), 25e9);  // all in one pod
}

TEST(Fabrics, OfRailsLetRingsStayOnTheirs) {
    // Two nodes a leaf switch, 4 to 1: 25 GB/s up from each rail, which one edge passes; spread, two.
    expect_rail_rate(on_fabric(tree(FabricKind::rail_optimised, 2, 4)), 25e9);
    expect_rail_rate(on_fabric(tree(FabricKind::rail_optimised, 2, 4), {PlacementKind::spread, {}}), 12.5e9);
    expect_rail_rate(on_fabric(tree(FabricKind::rail_optimised, 4, 100)), 48e9);
}

TEST(Fabrics, OfATorusCarryEdgesOverTheirLinks) {
    // 400 GB/s of NICs for two links a node: 200 GB/s, and every link has one edge of 8 rails.
    expect_rail_rate(on_fabric(torus({4})), 25e9);
    expect_rail_rate(on_fabric(torus({2, 2})), 25e9);
    expect_rail_rate(on_fabric(torus({2, 2}, 400e9)), 48e9);
    expect_rail_rate(on_fabric(torus({4}, 100e9)), 12.5e9);
    // Nodes 0, 3, 1, 4 of a circle of 5: 0 → 3 and 1 → 4 both go backwards over the link from 0 to 4.
    expect_rail_rate(on_fabric(torus({5}), {PlacementKind::list, {0, 3, 1, 4}}), 12.5e9);
}

TEST(Fabrics, CarryAnAllToAllFromEachToEach) {
    // 5 nodes in a circle: a link lies between 3 pairs of nodes. A node sends what its 8 NICs do, a quarter
    // of it to each other node: 6 NICs' load on 200 GB/s. On one switch 1 NIC's load takes 50 GB/s.
    Collective exchange = all_gather(elements);
    exchange.kind = CollectiveKind::all_to_all;
    const Plan plan =
        test::test_plan(test::test_cluster(5), {{"step", 1, {on(Stream::gather, exchange)}}}, work_buffers);
    const CollectiveCost cost = cost_of(plan);
    const double nic_bytes = cost.nic_weight * cost.unit_bytes;
    EXPECT_NEAR(step_time(plan, {}), cost.start_s() + nic_bytes / 50e9, 1e-9);
    EXPECT_NEAR(step_time(plan, on_fabric(torus({5}))), cost.start_s() + 6 * nic_bytes / 200e9, 1e-9);
}

/// Two GPUs a NIC of twice the rate: half as many rails, each twice as fast.
TEST(Fabrics, HaveARailForEachNicOfANode) {
    Plan shared = gathering(4);
    shared.scenario.cluster.inter_node.nics_per_node = 4;
    for (const PlacementKind kind : {PlacementKind::packed, PlacementKind::spread}) {
        const WhatIf rails = on_fabric(tree(FabricKind::rail_optimised, 2, 4), {kind, {}});
        EXPECT_NEAR(step_time(shared, rails), step_time(gathering(4), rails), 1e-9);
        const LinkLoad uplink = simulate(shared, rails).step.links.back();
        EXPECT_EQ(uplink.links, 8U);
        EXPECT_DOUBLE_EQ(uplink.bytes_per_s, 2 * 25e9);
    }
    shared.scenario.cluster.inter_node.nics_per_node = 16;  // two a GPU, which are one
    EXPECT_EQ(simulate(shared, on_fabric(tree(FabricKind::rail_optimised, 2, 4))).step.links.back().links,
              16U);
}

TEST(Fabrics, ShowTheLoadOfTheirLinks) {
    const CollectiveCost cost = cost_of(gathering(4));
    const double edge = 8 * cost.nic_weight * cost.unit_bytes;
    const auto links = [](FabricSpec fabric) {
        return simulate(gathering(4), on_fabric(std::move(fabric))).step.links;
    };
    const std::vector<LinkLoad> in_pods = links(pods(1, 2, 2, 4));
    ASSERT_EQ(in_pods.size(), 4U);
    EXPECT_EQ(in_pods[2].name, "leaf uplink, fullest");
    EXPECT_EQ(in_pods[3].name, "pod uplink, fullest");
    EXPECT_EQ(in_pods[3].links, 2U);
    EXPECT_DOUBLE_EQ(in_pods[3].bytes_per_s, 100e9);
    EXPECT_NEAR(in_pods[3].bytes, edge, 1);
    EXPECT_EQ(links(tree(FabricKind::rail_optimised, 2, 4)).back().name, "rail uplink, fullest");
    EXPECT_EQ(links(tree(FabricKind::rail_optimised, 2, 4)).back().links, 16U);
    const std::vector<LinkLoad> in_torus = links(torus({2, 2}));
    EXPECT_EQ(in_torus.back().name, "torus link, fullest");
    EXPECT_EQ(in_torus.back().links, 6U);  // four along rows, two between them
    EXPECT_NEAR(in_torus.back().bytes, edge, 1);
}

/// Shard groups of `shard` ranks, whose replicas reduce on another stream.
Plan hybrid(std::uint64_t nodes, std::uint64_t shard) {
    std::vector<Operation> operations = test::sharded_step(6, 50'000'000, Stream::reduce, 20'000'000);
    for (Operation& operation : operations)
        if (auto* c = std::get_if<Collective>(&operation.body);
            c != nullptr && operation.stream == Stream::reduce)
            c->group = GroupKind::replica_group;
    Plan plan = test::test_plan(test::test_cluster(nodes), {{"step", 1, operations}}, work_buffers);
    plan.layout.shard_group = shard;
    return plan;
}

TEST(LeafSwitches, NeedNoMoreClassesThanTheyHave) {
    // Factors that differ by less than anybody can see put each rank into a class of its own.
    for (const std::uint64_t shard : {8U, 16U, 48U})
        for (const std::uint64_t nodes_per_leaf : {1U, 2U, 4U, 5U})
            for (const PlacementKind kind : {PlacementKind::packed, PlacementKind::spread}) {
                SCOPED_TRACE(fmt::format("shard group {}, leaves of {}", shard, nodes_per_leaf));
                const Plan plan = hybrid(6, shard);
                const WhatIf coarse = on_leaves(nodes_per_leaf, 6, {kind, {}});
                WhatIf fine = coarse;
                for (std::uint64_t rank = 0; rank < plan.scenario.world_size(); ++rank)
                    fine.stragglers.push_back({rank, 1 - 1e-14 * static_cast<double>(rank + 1)});
                EXPECT_LT(rank_classes(plan, coarse).classes.size(), plan.scenario.world_size());
                EXPECT_EQ(rank_classes(plan, fine).classes.size(), plan.scenario.world_size());
                const double expected = step_time(plan, coarse);
                EXPECT_NEAR(step_time(plan, fine), expected, 1e-9 * expected);
            }
}

TEST(Fabrics, NeedNoMoreClassesThanTheyHave) {
    for (const std::uint64_t shard : {8U, 16U, 48U})
        for (const FabricSpec& fabric :
             {torus({6}), torus({3, 2}), pods(1, 2, 2, 3), tree(FabricKind::rail_optimised, 2, 6)}) {
            SCOPED_TRACE(fmt::format("shard group {}, {}", shard, describe(fabric, {})));
            const Plan plan = hybrid(6, shard);
            WhatIf fine = on_fabric(fabric);
            for (std::uint64_t rank = 0; rank < plan.scenario.world_size(); ++rank)
                fine.stragglers.push_back({rank, 1 - 1e-14 * static_cast<double>(rank + 1)});
            EXPECT_LT(rank_classes(plan, on_fabric(fabric)).classes.size(), plan.scenario.world_size());
            const double expected = step_time(plan, on_fabric(fabric));
            EXPECT_NEAR(step_time(plan, fine), expected, 1e-9 * expected);
        }
}

TEST(Fabrics, OfAPipelineCarryItsMessages) {
    // Stages of a node each on a circle of 4: what a stage sends onwards goes over one link, and leaf
    // switches of two nodes pass what goes from the second stage to the third.
    const Plan plan = test::pipeline_plan({1, 1, 1, 1}, 8, 10'000'000, 400'000'000);
    const double without = step_time(plan, {});
    EXPECT_EQ(step_time(plan, on_fabric(tree(FabricKind::fat_tree, 4, 100))), without);
    EXPECT_GT(step_time(plan, on_fabric(tree(FabricKind::fat_tree, 2, 100))), 1.5 * without);
    EXPECT_GT(step_time(plan, on_fabric(torus({4}, 1e9))), 1.5 * without);
}

/// A job and one in the background, spread over two leaves of 2 nodes, 200 GB/s up; returns how it went.
struct Outcome {
    double step_s = 0;
    std::uint64_t background_steps = 0;
    double background_s = 0;
};
Outcome beside(const Plan& job, const Plan& other) {
    const FabricSites sites{4, {0, 2}, {1, 3}};
    const FabricRoutes routes = fabric_routes(on_leaves(2, 4), job.scenario.cluster, sites.nodes);
    const RankClasses classes = rank_classes(job, {}, job_sites(routes, sites, sites.job, sites.background));
    const RankClasses other_classes =
        rank_classes(other, {}, job_sites(routes, sites, sites.background, sites.job));
    const LinkRates rates = link_rates(job.scenario.cluster);
    const std::vector<TimedProgram> programs{as_class(time_program(job, 0), classes, 0, rates)};
    const std::vector<TimedProgram> others{as_class(time_program(other, 0), other_classes, 0, rates)};
    const sim::GraphJob background{others, other_classes, rates};
    const sim::StepGraph graph = sim::build_step_graph({programs, classes, rates}, &background, routes);
    const test::Executed executed = test::execute(graph);
    return {executed.times[graph.background - 1].end_s, executed.background_steps, executed.background_s};
}

TEST(Background, SharesTheUplinksFairly) {
    // Both jobs' rings leave each leaf on 8 rails: 12.5 GB/s each as long as both flow.
    const Plan job = gathering(2), other = gathering(2, 10 * elements);
    const CollectiveCost cost = cost_of(job), long_cost = cost_of(other);
    const double bytes = cost.nic_weight * cost.unit_bytes;
    const double head_start = long_cost.start_s() - cost.start_s();  // the job's flow starts earlier
    ASSERT_GT(head_start, 0);
    ASSERT_LT(25e9 * head_start, bytes);
    const double expected = long_cost.start_s() + (bytes - 25e9 * head_start) / 12.5e9;
    const Outcome outcome = beside(job, other);
    EXPECT_NEAR(outcome.step_s, expected, 1e-9);
    EXPECT_EQ(outcome.background_steps, 0U);
}

TEST(Background, StartsItsStepsAnewUntilTheStepEnds) {
    const Plan job = gathering(2, 10 * elements), other = gathering(2, elements / 10);
    const Outcome outcome = beside(job, other);
    EXPECT_GT(outcome.background_steps, 10U);
    EXPECT_LE(outcome.background_s, outcome.step_s);
    EXPECT_GT(outcome.step_s,
              cost_of(job).start_s() + cost_of(job).nic_weight * cost_of(job).unit_bytes / 25e9);
}

WhatIf beside_gpt2_xl(const Scenario& scenario) {
    ScenarioRequest request;
    request.text = R"({"model": {"preset": "gpt2"}, "cluster": {"topology": "dgx-h100", "nodes": 4},
                       "what_if": {"leaf_switches": {"nodes": 4, "oversubscription": 8}, "placement": "spread",
                                   "background": {"scenario": {"model": {"preset": "gpt2-xl"}, "training":
                                   {"zero_stage": 3}, "cluster": {"topology": "dgx-h100", "nodes": 4}}}}})";
    return resolve_what_if(request, scenario);
}

TEST(Background, OfAScenarioNeverSpeedsUp) {
    ScenarioRequest request;
    request.text = R"({"model": {"preset": "gpt2-large"}, "training": {"zero_stage": 3},
                       "cluster": {"topology": "dgx-h100", "nodes": 4}})";
    const Plan plan = make_plan(resolve_scenario(request));
    const WhatIf what_if = beside_gpt2_xl(plan.scenario);
    const WhatIfStep report = simulate(plan, what_if);
    ASSERT_EQ(report.what_if.causes.size(), 2U);
    EXPECT_GT(report.what_if.causes[0].added_s, 0);
    EXPECT_GT(report.what_if.causes[1].added_s, 0);
    ASSERT_TRUE(report.what_if.background);
    EXPECT_EQ(report.what_if.background->name, "gpt2-xl on 32 GPUs");
    EXPECT_EQ(report.what_if.background->ranks, 32U);
    EXPECT_GT(report.what_if.background->step_time_alone_s, 0);
    const NeighbourJob& other = *report.what_if.background;
    EXPECT_GE(other.step_time_s.value_or(other.step_time_alone_s), other.step_time_alone_s * (1 - 1e-9));
}

}  // namespace
}  // namespace zeroplan
