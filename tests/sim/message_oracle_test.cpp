#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "core/cost/random_program.hpp"
#include "core/cost/tiny_plan.hpp"
#include "sim/execute_graph.hpp"
#include "sim/ring_messages.hpp"

// One flow coupled over all links of a ring against every message of it on its own.
namespace zeroplan {
namespace {

using test::all_gather;
using test::on;
using test::work_buffers;

constexpr std::uint64_t elements = 4'000'000'000;  // 8 GB: bandwidth is all that counts

FabricSpec tree(FabricKind kind, std::uint64_t nodes, double ratio) {
    FabricSpec spec;
    spec.kind = kind;
    spec.nodes_per_leaf = nodes;
    spec.leaf_oversubscription = ratio;
    return spec;
}

FabricSpec pods() {
    FabricSpec spec = tree(FabricKind::fat_tree, 2, 2);
    spec.leaves_per_pod = 2;
    spec.pod_oversubscription = 2;
    return spec;
}

FabricSpec torus(std::vector<std::uint64_t> dimensions) {
    FabricSpec spec;
    spec.kind = FabricKind::torus;
    spec.dimensions = std::move(dimensions);
    return spec;
}

/// Nodes of so many GPUs, in the order that a job has them.
struct Case {
    const char* name;
    FabricSpec fabric;
    std::vector<std::uint64_t> nodes;
    std::uint64_t gpus_per_node = 8;
};

std::vector<std::uint64_t> in_order(std::uint64_t count) {
    std::vector<std::uint64_t> nodes(count);
    std::iota(nodes.begin(), nodes.end(), 0);
    return nodes;
}

std::vector<std::uint64_t> shuffled(std::uint64_t count) {
    std::vector<std::uint64_t> nodes = in_order(count);
    std::mt19937 random(7);
    std::shuffle(nodes.begin(), nodes.end(), random);
    return nodes;
}

const std::vector<Case> cases{
    {"one switch, a node", {}, in_order(1)},
    {"one switch, 64 ranks", {}, in_order(8)},
    {"one switch, 16 nodes", {}, in_order(16), 1},
    {"leaves, packed", tree(FabricKind::fat_tree, 2, 4), in_order(8)},
    {"leaves, shuffled", tree(FabricKind::fat_tree, 2, 4), shuffled(8)},
    {"leaves, 256 nodes", tree(FabricKind::fat_tree, 16, 8), shuffled(256), 1},
    {"rails", tree(FabricKind::rail_optimised, 2, 4), shuffled(8)},
    {"pods", pods(), shuffled(8)},
    {"torus, packed", torus({3, 3}), in_order(9)},
    {"torus, shuffled", torus({3, 3}), shuffled(9)},
    {"torus of three dimensions", torus({5, 5, 3}), shuffled(75), 1},
};

/// The cluster, its fabric, and one collective of all of its ranks over rings.
class Ring {
public:
    Ring(const Case& of, CollectiveKind kind)
        : plan_(test::test_plan(test::test_cluster(of.nodes.size(), of.gpus_per_node),
                                {{"step", 1, {on(Stream::gather, all_gather(elements))}}}, work_buffers)),
          rates_(link_rates(plan_.scenario.cluster)),
          routes_(of.fabric, of.nodes.size(), of.gpus_per_node, rates_.nic_bytes_per_s, true),
          classes_(
              rank_classes(plan_, {}, job_sites(routes_, {of.nodes.size(), of.nodes, {}}, of.nodes, {}))),
          program_(time_program(plan_, 0)) {
        TimedCollective& collective = program_.collectives.front();
        const ClusterSpec& cluster = plan_.scenario.cluster;
        collective.kind = kind;
        collective.cost =
            collective_cost(kind, Bytes{2 * elements}, group_placement(GroupKind::world, 1, cluster), cluster,
                            {CollectiveAlgorithm::ring, CollectiveProtocol::simple});
        messages_ = {kind, collective.cost, site(of), rates_};
    }

    double coupled_s() const {
        const std::vector<TimedProgram> programs{program_};
        const auto executed =
            test::execute(sim::build_step_graph({programs, classes_, rates_}, nullptr, routes_));
        return executed.times.front().end_s - messages_.cost.start_s();
    }

    double by_messages_s() const {
        double end = 0;
        for (const NodeTime& time : test::execute(test::ring_messages(messages_, routes_)).times)
            end = std::max(end, time.end_s);
        return end;
    }

    double alone_s() const { return messages_.cost.transfer_s; }

private:
    static CommunicatorSite site(const Case& of) {
        CommunicatorSite result;
        std::vector<std::uint64_t> rails = in_order(of.gpus_per_node);
        for (const std::uint64_t node : of.nodes) result.nodes.push_back({node, rails});
        result.ranks = of.nodes.size() * of.gpus_per_node;
        return result;
    }

    Plan plan_;
    LinkRates rates_;
    FabricRoutes routes_;
    RankClasses classes_;
    TimedProgram program_;
    test::RingMessages messages_;
};

TEST(MessageOracle, AgreesWithCoupledFlows) {
    for (const Case& of : cases)
        for (const CollectiveKind kind :
             {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
            SCOPED_TRACE(fmt::format("{}, {}", of.name, to_string(kind)));
            const Ring ring(of, kind);
            const double coupled = ring.coupled_s(), messages = ring.by_messages_s();
            EXPECT_NEAR(coupled / messages, 1, 1e-3);
            RecordProperty(fmt::format("{} {}", of.name, to_string(kind)),
                           fmt::format("{}", coupled / messages));
        }
}

TEST(MessageOracle, IsSlowedByWhatItCrosses) {
    // 64 ranks on leaves of 2 nodes, 4 to 1, packed: one edge of 8 rails shares 200 GB/s, where a ring has 48
    // of each NIC.
    const Ring alone({"", {}, in_order(8)}, CollectiveKind::all_gather);
    const Ring leaves({"", tree(FabricKind::fat_tree, 2, 4), in_order(8)}, CollectiveKind::all_gather);
    EXPECT_NEAR(alone.by_messages_s(), alone.alone_s(), 1e-9);
    EXPECT_NEAR(leaves.by_messages_s() / alone.by_messages_s(), 48.0 / 25, 1e-2);
}

}  // namespace
}  // namespace zeroplan
