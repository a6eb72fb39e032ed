#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/cost/random_program.hpp"
#include "sim/execute_graph.hpp"
#include "sim/star_messages.hpp"
#include "zeroplan/simulate.hpp"
#include "zeroplan/words.hpp"

// Collectives that switches reduce, and every algorithm forced, against the closed form and single messages.
namespace zeroplan {
namespace {

using test::all_gather;
using test::on;
using test::work_buffers;

Collective of_kind(CollectiveKind kind, std::uint64_t elements) {
    Collective collective = all_gather(elements);
    collective.kind = kind;
    return collective;
}

ClusterSpec sharp_cluster(std::uint64_t nodes, std::uint64_t gpus_per_node = 8) {
    ClusterSpec cluster = test::test_cluster(nodes, gpus_per_node);
    cluster.inter_node.sharp = nodes > 1;
    return cluster;
}

TEST(EveryAlgorithm, EqualsTheClosedForm) {
    std::set<CollectiveAlgorithm> seen;
    for (const auto& forced : words<CollectiveAlgorithm>())
        for (const std::uint64_t ranks : {2U, 4U, 8U, 16U, 24U, 64U, 1024U, 16'384U})
            for (const std::uint64_t elements : {16'384U, 134'217'728U}) {
                SCOPED_TRACE(
                    fmt::format("{}, {} ranks, {} elements", to_string(forced.value), ranks, elements));
                ClusterSpec cluster = sharp_cluster(std::max<std::uint64_t>(1, ranks / 8));
                cluster.gpus_used = ranks;
                cluster.nccl.algorithm = forced.value;
                std::vector<Operation> operations;
                for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                                  CollectiveKind::reduce_scatter, CollectiveKind::broadcast})
                    operations.push_back(on(Stream::gather, of_kind(kind, elements)));
                const Plan plan = test::test_plan(cluster, {{"step", 2, operations}}, work_buffers);
                for (const TimedCollective& c : time_program(plan, 0).collectives)
                    seen.insert(c.cost.algorithm);
                const SimReport report = simulate(plan);
                EXPECT_NEAR(report.rank_groups[0].step_time_s / report.closed_form.step_time_s, 1, 1e-9);
            }
    for (const auto& forced : words<CollectiveAlgorithm>())
        EXPECT_EQ(seen.contains(forced.value), forced.value != CollectiveAlgorithm::pat)  // below
            << to_string(forced.value);
}

TEST(EveryAlgorithm, EqualsTheClosedFormWithOneRankANode) {
    for (const CollectiveAlgorithm algorithm :
         {CollectiveAlgorithm::pat, CollectiveAlgorithm::collnet_direct, CollectiveAlgorithm::collnet_chain})
        for (const std::uint64_t nodes : {2U, 3U, 16U, 1024U}) {
            ClusterSpec cluster = sharp_cluster(nodes, 1);
            cluster.nccl.algorithm = algorithm;
            const Plan plan =
                test::test_plan(cluster,
                                {{"step",
                                  1,
                                  {on(Stream::gather, of_kind(CollectiveKind::all_gather, 5'000'000)),
                                   on(Stream::gather, of_kind(CollectiveKind::all_reduce, 5'000'000))}}},
                                work_buffers);
            const SimReport report = simulate(plan);
            EXPECT_NEAR(report.rank_groups[0].step_time_s / report.closed_form.step_time_s, 1, 1e-9);
        }
}

constexpr std::uint64_t elements = 4'000'000'000;  // 8 GB: bandwidth is all that counts

/// A collective of all ranks that switches reduce, on leaf switches.
struct Case {
    const char* name;
    std::vector<std::uint64_t> nodes;
    std::uint64_t gpus_per_node, nodes_per_leaf;
    double oversubscription;
};
const std::vector<Case> cases{
    {"one leaf", {0, 1, 2, 3, 4, 5, 6, 7}, 1, 8, 8},      {"packed", {0, 1, 2, 3, 4, 5, 6, 7}, 8, 2, 4},
    {"spread", {0, 2, 4, 6, 1, 3, 5, 7}, 8, 2, 8},        {"one NIC, a leaf a node", {0, 1, 2, 3}, 1, 1, 3},
    {"unevenly filled leaves", {0, 1, 2, 3, 4}, 1, 3, 6},
};

double coupled_s(const Case& of, const Plan& plan) {
    FabricSpec spec;
    spec.kind = FabricKind::fat_tree;
    spec.nodes_per_leaf = of.nodes_per_leaf;
    spec.leaf_oversubscription = of.oversubscription;
    const LinkRates rates = link_rates(plan.scenario.cluster);
    const FabricRoutes routes(spec, of.nodes.size(), of.gpus_per_node, rates.nic_bytes_per_s, true);
    const RankClasses classes =
        rank_classes(plan, {}, job_sites(routes, {of.nodes.size(), of.nodes, {}}, of.nodes, {}));
    const std::vector<TimedProgram> programs{time_program(plan, 0)};
    const sim::StepGraph graph = sim::build_step_graph({programs, classes, rates}, nullptr, routes);
    return test::execute(graph).times.front().end_s - programs[0].collectives[0].cost.start_s();
}

double by_messages_s(const Case& of, const Plan& plan, std::uint64_t chunks) {
    const TimedCollective collective = time_program(plan, 0).collectives.front();
    const double nic = link_rates(plan.scenario.cluster).nic_bytes_per_s;
    const double below = static_cast<double>(of.nodes_per_leaf * of.gpus_per_node) * nic;
    const test::StarMessages messages{.kind = collective.kind,
                                      .cost = collective.cost,
                                      .nodes = of.nodes,
                                      .rails = of.gpus_per_node,
                                      .nic_bytes_per_s = nic,
                                      .nodes_per_leaf = of.nodes_per_leaf,
                                      .leaf_bytes_per_s = below / of.oversubscription,
                                      .chunks = chunks};
    double end = 0;
    for (const NodeTime& time : test::execute(test::star_messages(messages)).times)
        end = std::max(end, time.end_s);
    return end;
}

// The first chunk passes four links before the second one arrives: 3 more chunks' time in all.
TEST(StarOracle, AgreesWithCoupledFlows) {
    for (const Case& of : cases)
        for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather}) {
            SCOPED_TRACE(fmt::format("{}, {}", of.name, to_string(kind)));
            ClusterSpec cluster = sharp_cluster(of.nodes.size(), of.gpus_per_node);
            cluster.nccl.algorithm = CollectiveAlgorithm::collnet_direct;
            const Plan plan = test::test_plan(
                cluster, {{"step", 1, {on(Stream::gather, of_kind(kind, elements))}}}, work_buffers);
            ASSERT_EQ(time_program(plan, 0).collectives[0].cost.algorithm,
                      CollectiveAlgorithm::collnet_direct);
            const std::uint64_t chunks = 400;
            const double messages = by_messages_s(of, plan, chunks);
            EXPECT_NEAR(messages / coupled_s(of, plan), 1, 4.0 / static_cast<double>(chunks));
        }
}

TEST(StarOracle, PassesAnUplinkWithHalfOfARingsBytes) {
    // Leaves of 2 nodes of 8 NICs, 16 to 1: 50 GB/s for 8 rails. A ring sends 2 · 63/64 of an eighth of the
    // buffer over the uplink, switches an eighth.
    const Case of{"", {0, 1, 2, 3, 4, 5, 6, 7}, 8, 2, 16};
    const auto seconds = [&of](CollectiveAlgorithm algorithm) {
        ClusterSpec cluster = sharp_cluster(8);
        cluster.nccl = {algorithm, CollectiveProtocol::simple};
        return coupled_s(
            of,
            test::test_plan(
                cluster, {{"step", 1, {on(Stream::gather, of_kind(CollectiveKind::all_reduce, elements))}}},
                work_buffers));
    };
    const double switched = seconds(CollectiveAlgorithm::collnet_direct);
    EXPECT_NEAR(switched, 8e9 / 50e9, 1e-9);
    EXPECT_NEAR(seconds(CollectiveAlgorithm::ring) / switched, 2 * 63.0 / 64, 1e-9);
}

}  // namespace
}  // namespace zeroplan
