#include "zeroplan/nccl_tuner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include "zeroplan/step_collectives.hpp"
#include "zeroplan/words.hpp"

namespace zeroplan {
namespace {

constexpr std::uint64_t smallest = 1024, largest = 16ULL << 30;

const char* tuner_name(CollectiveKind kind) {
    switch (kind) {
        case CollectiveKind::all_reduce:
            return "allreduce";
        case CollectiveKind::all_gather:
            return "allgather";
        case CollectiveKind::reduce_scatter:
            return "reducescatter";
        case CollectiveKind::broadcast:
            return "broadcast";
        case CollectiveKind::all_to_all:
            return nullptr;  // messages: nothing to choose
    }
    return nullptr;
}

struct Choice {
    CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
    CollectiveProtocol protocol = CollectiveProtocol::simple;
    friend bool operator==(const Choice&, const Choice&) = default;
};

std::optional<Choice> fastest(CollectiveKind kind, std::uint64_t bytes, const GroupPlacement& placement,
                              const ClusterSpec& cluster) {
    std::optional<Choice> best;
    double best_s = std::numeric_limits<double>::infinity();
    for (const auto& algorithm : words<CollectiveAlgorithm>()) {
        for (const auto& protocol : words<CollectiveProtocol>()) {
            const CollectiveChoice forced{algorithm.value, protocol.value};
            if (!can_force(kind, placement, cluster, forced)) continue;
            const double seconds = collective_cost(kind, Bytes{bytes}, placement, cluster, forced).seconds();
            if (seconds >= best_s) continue;
            best_s = seconds;
            best = Choice{algorithm.value, protocol.value};
        }
    }
    return best;
}

void add_ranges(std::string& out, CollectiveKind kind, const GroupPlacement& placement,
                const ClusterSpec& cluster) {
    std::uint64_t from = 0;
    std::optional<Choice> now = fastest(kind, smallest, placement, cluster);
    const auto write = [&](std::uint64_t to) {
        if (now)
            fmt::format_to(std::back_inserter(out), "{},{},{},{},{},-1,{},{}\n", tuner_name(kind), from, to,
                           to_string(now->algorithm), to_string(now->protocol), placement.nodes,
                           placement.ranks);
    };
    for (std::uint64_t bytes = 2 * smallest; bytes <= largest; bytes *= 2) {
        const std::optional<Choice> next = fastest(kind, bytes, placement, cluster);
        if (next == now) continue;
        write(bytes - 1);
        from = bytes;
        now = next;
    }
    write(std::numeric_limits<std::uint64_t>::max());
}

/// Of every program: kinds of collectives on the communicators that run them.
std::vector<std::pair<CollectiveKind, GroupPlacement>> used(const Plan& plan) {
    std::vector<std::pair<CollectiveKind, GroupPlacement>> result;
    for (std::uint32_t g = 0; g < plan.rank_groups.size(); ++g) {
        const std::uint64_t shard = layout_of(plan, plan.rank_groups[g].program).shard_group;
        const GroupSizes sizes = group_sizes(plan.scenario.training, shard);
        for (const StepCollective& collective : step_collectives(plan, g)) {
            if (collective.ranks < 2 || collective.kind == "send") continue;
            for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                              CollectiveKind::reduce_scatter, CollectiveKind::broadcast}) {
                if (collective.kind != to_string(kind)) continue;
                const std::pair one{kind, group_placement(collective.group, sizes, plan.scenario.cluster)};
                if (std::find(result.begin(), result.end(), one) == result.end()) result.push_back(one);
            }
        }
    }
    return result;
}

}  // namespace

std::vector<Warning> nccl_tuner_warnings(const Plan& plan) {
    if (plan.scenario.world_size() == 1)
        return {{"nccl_tuner_without_rows",
                 "one GPU has no collectives: --nccl-tuner writes a header and no rows"}};
    const auto& measured = plan.scenario.cluster.calibration.collectives;
    const auto pairs = used(plan);
    const auto is_used = [&](const MeasuredPoint& point) {
        return std::any_of(pairs.begin(), pairs.end(), [&](const auto& one) {
            return one.first == point.kind && one.second.ranks == point.ranks &&
                   one.second.nodes == point.nodes;
        });
    };
    const auto points = std::count_if(measured.begin(), measured.end(), is_used);
    if (points == 0) return {};
    return {{"nccl_tuner_without_measured",
             fmt::format("--nccl-tuner's table is by the cost model: {} measured of this step's collectives "
                         "{} how long NCCL's own choice takes, not which it was or what another would take; "
                         "time the table's choices with NCCL_ALGO and NCCL_PROTO before it is used",
                         points == 1 ? "the point" : fmt::format("the {} points", points),
                         points == 1 ? "says" : "say")}};
}

std::string nccl_tuner_csv(const Plan& plan) {
    std::string out =
        "# NCCL tuner configuration by zeroplan: the fastest by its cost model, for this step's "
        "communicators\n"
        "# NCCL_TUNER_PLUGIN=libnccl-tuner-example.so NCCL_TUNER_CONFIG_FILE=this file\n"
        "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks\n";
    ClusterSpec cluster = plan.scenario.cluster;
    cluster.nccl = {};
    for (const auto& [kind, placement] : used(plan)) add_ranges(out, kind, placement, cluster);
    return out;
}

}  // namespace zeroplan
