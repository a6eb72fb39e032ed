#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "zeroplan/collective_cost.hpp"
#include "zeroplan/plan.hpp"
#include "zeroplan/step_timeline.hpp"

namespace zeroplan {

/// All collectives of a step that are alike, and how NCCL runs one of them.
struct StepCollective {
    std::string kind;  ///< "all_gather"; "send" of a pipeline's message
    GroupKind group = GroupKind::shard_group;
    std::uint64_t ranks = 1;     ///< of the communicator
    std::uint64_t count = 0;     ///< in a step of one rank
    CollectiveCost cost;         ///< of one, alone on its links
    double bus_bytes_per_s = 0;  ///< nccl-tests' busbw of one
    friend bool operator==(const StepCollective&, const StepCollective&) = default;
};

/// The different collectives and messages of a rank group's step, those that take longest in all first.
std::vector<StepCollective> step_collectives(const Plan& plan, std::uint32_t rank_group);

/// Says where the algorithm and protocol that the cluster forces fit none of the step's collectives.
std::vector<Warning> forced_choice_warnings(const Plan& plan);

/// What one GPU's links carry from `time_s` on, per direction.
struct LinkLoadPoint {
    double time_s = 0;
    double intra_node_bytes_per_s = 0, nic_bytes_per_s = 0;
    double bridge_bytes_per_s = 0;  ///< over the bridge of a pair, in nodes that have them
    friend bool operator==(const LinkLoadPoint&, const LinkLoadPoint&) = default;
};

/// Link load over a timed step: every collective carries its bytes evenly from the end of its start-up to its
/// end, so that the area under the curve is what it carries. Times increase; the last point is zero.
std::vector<LinkLoadPoint> link_load_over_time(const Plan& plan, std::uint32_t rank_group,
                                               const StepTimeline& timeline);

}  // namespace zeroplan
