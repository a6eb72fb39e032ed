#include "waiting.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "zeroplan/what_if_report.hpp"

namespace zeroplan::sim {
namespace {

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

/// What a class does where members of a collective come at different times.
struct Tally {
    double takes_part = 0, last_of = 0;
    std::set<std::uint32_t> met;  ///< other classes, there
};

void count(const std::vector<Arrival>& members, double least, std::vector<Tally>& tallies) {
    const auto earlier = [](const Arrival& a, const Arrival& b) { return a.ready_s < b.ready_s; };
    const auto [first, last] = std::minmax_element(members.begin(), members.end(), earlier);
    if (last->ready_s - first->ready_s <= least) return;
    for (const Arrival& member : members) {
        Tally& tally = tallies[member.rank_class];
        tally.takes_part += member.times;
        if (last->ready_s - member.ready_s <= least) tally.last_of += member.times;
        for (const Arrival& other : members)
            if (other.rank_class != member.rank_class) tally.met.insert(other.rank_class);
    }
}

/// Whether its others wait for a class as a rule. Peers of a slow rank come last to what they do with others,
/// having waited for it themselves: to fewer than those where it is they who wait.
bool stands_out(const Tally& tally) {
    return 2 * tally.last_of > tally.takes_part;
}

}  // namespace

std::optional<LastClass> waited_for(const std::vector<TimedProgram>& programs,
                                    const std::vector<TimedProgram>& executed, const StepGraph& graph,
                                    const std::vector<NodeTimes>& times, const RankClasses& classes) {
    Arrivals arrivals;
    for (std::uint32_t c = 0; c < executed.size(); ++c)
        Arriving(programs[c], executed[c], times[c], graph.node_of_run[c], c).add_to(arrivals);

    std::vector<Tally> tallies(executed.size());
    const double least = rounding_share * step_time(times);
    for (const auto& [node, members] : arrivals) count(members, least, tallies);

    std::optional<std::uint32_t> worst;
    const auto waits_more = [&](std::uint32_t a, std::uint32_t b) {
        return std::pair(tallies[a].last_of, -classes.classes[a].compute_factor) >
               std::pair(tallies[b].last_of, -classes.classes[b].compute_factor);
    };
    for (std::uint32_t c = 0; c < tallies.size(); ++c)
        if (stands_out(tallies[c]) && (!worst || waits_more(c, *worst))) worst = c;
    if (!worst) return std::nullopt;
    const Tally& of = tallies[*worst];
    return LastClass{*worst,
                     {of.met.begin(), of.met.end()},
                     static_cast<std::uint64_t>(of.last_of),
                     static_cast<std::uint64_t>(of.takes_part)};
}

}  // namespace zeroplan::sim
