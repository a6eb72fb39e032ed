#include "waiting.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace zeroplan::sim {
namespace {

/// Differences of dates below this share of the step are rounding.
constexpr double rounding = 1e-9;

/// A class that is ready for a collective.
struct Arrival {
    std::uint32_t rank_class = 0;
    double ready_s = 0;
    double times = 1;  ///< how many collectives of the step it stands for
};
using Arrivals = std::map<std::uint32_t, std::vector<Arrival>>;  ///< by node of the graph

/// When each run of a program could start if its collectives waited for nobody else.
class Arriving {
public:
    Arriving(const TimedProgram& whole, const TimedProgram& executed, const NodeTimes& times,
             const std::vector<std::uint32_t>& node_of_run, std::uint32_t rank_class)
        : whole_(whole), executed_(executed), times_(times), node_of_run_(node_of_run), class_(rank_class) {}

    void add_to(Arrivals& arrivals) {
        for (std::size_t s = 0; s < executed_.sections.size(); ++s) {
            const std::uint64_t repeat = executed_.sections[s].repeat;
            for (std::uint64_t i = 0; i < repeat; ++i) {
                const std::uint64_t left_out = i + 1 == repeat ? whole_.sections[s].repeat - repeat : 0;
                add_iteration(executed_.sections[s], 1 + static_cast<double>(left_out), arrivals);
            }
        }
    }

private:
    void add_iteration(const TimedSection& section, double stands_for, Arrivals& arrivals) {
        const std::size_t base = run_;
        const double host_before = lane_end_[host_lane];
        for (const TimedNode& node : section.nodes) {
            double ready = lane_end_[node.lane];
            for (const std::uint32_t wait : node.after)
                if (wait != no_node)
                    ready = std::max(ready, wait == host_at_start ? host_before : times_[base + wait].end_s);
            if (node.collective != no_collective && node.transfer == TransferSide::none)
                arrivals[node_of_run_[run_]].push_back({class_, ready, stands_for});
            lane_end_[node.lane] = times_[run_++].end_s;
        }
    }

    const TimedProgram& whole_;
    const TimedProgram& executed_;
    const NodeTimes& times_;
    const std::vector<std::uint32_t>& node_of_run_;
    std::uint32_t class_;
    std::array<double, lane_count> lane_end_{};
    std::size_t run_ = 0;
};

double step_time(const std::vector<NodeTimes>& times) {
    double end = 0;
    for (const NodeTimes& of_class : times)
        for (const NodeTime& time : of_class) end = std::max(end, time.end_s);
    return end;
}

}  // namespace

std::optional<WaitedFor> waited_for(const std::vector<TimedProgram>& programs,
                                    const std::vector<TimedProgram>& executed, const StepGraph& graph,
                                    const std::vector<NodeTimes>& times, const RankClasses& classes) {
    Arrivals arrivals;
    for (std::uint32_t c = 0; c < executed.size(); ++c)
        Arriving(programs[c], executed[c], times[c], graph.node_of_run[c], c).add_to(arrivals);

    const double least = rounding * step_time(times);
    std::vector<double> rank_seconds(executed.size()), last_of(executed.size());
    double collectives = 0;
    for (const auto& [node, members] : arrivals) {
        const auto [first, last] =
            std::minmax_element(members.begin(), members.end(),
                                [](const Arrival& a, const Arrival& b) { return a.ready_s < b.ready_s; });
        if (last->ready_s - first->ready_s <= least) continue;
        collectives += last->times;
        last_of[last->rank_class] += last->times;
        for (const Arrival& member : members)
            rank_seconds[last->rank_class] += member.times * (last->ready_s - member.ready_s) *
                                              static_cast<double>(classes.classes[member.rank_class].count());
    }
    if (collectives == 0) return std::nullopt;
    const auto worst = static_cast<std::size_t>(std::max_element(rank_seconds.begin(), rank_seconds.end()) -
                                                rank_seconds.begin());
    return WaitedFor{classes.classes[worst].ranks, static_cast<std::uint64_t>(last_of[worst]),
                     static_cast<std::uint64_t>(collectives), 0};
}

}  // namespace zeroplan::sim
