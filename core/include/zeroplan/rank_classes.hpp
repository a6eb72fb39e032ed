#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "zeroplan/collective_cost.hpp"
#include "zeroplan/fabric_crossing.hpp"
#include "zeroplan/fabric_sites.hpp"
#include "zeroplan/plan.hpp"
#include "zeroplan/step_program.hpp"
#include "zeroplan/timed_program.hpp"
#include "zeroplan/what_if.hpp"

namespace zeroplan {

/// Where a rank and its neighbours in a pipeline meet the fabric.
struct RankPorts {
    FabricPort own, next, previous;
    friend bool operator==(const RankPorts&, const RankPorts&) = default;
};

/// Ranks that do the same at the same moments: one program, one speed, links of one bandwidth, and the same
/// holds for those they communicate with, and for those these communicate with, and so on.
struct AlikeRanks {
    std::vector<RankRange> ranks;
    std::uint32_t program = 0;
    double compute_factor = 1, gpu_link_factor = 1, nic_factor = 1;
    std::array<std::uint32_t, group_kind_count> communicator{};  ///< by GroupKind, into `communicators`
    std::uint32_t next_stage = 0, previous_stage = 0;            ///< classes of the neighbours in a pipeline
    std::vector<RankPorts> ports;  ///< of each rank, in a pipeline on a fabric that blocks
    std::uint64_t count() const;
    friend bool operator==(const AlikeRanks&, const AlikeRanks&) = default;
};

/// Communicators whose members are of the same classes.
struct ClassCommunicator {
    GroupKind group = GroupKind::shard_group;
    std::vector<std::uint32_t> classes;                      ///< in order
    double least_gpu_link_factor = 1, least_nic_factor = 1;  ///< of all members
    std::vector<CommunicatorSite> sites;                     ///< of all of them, on a fabric that blocks
    friend bool operator==(const ClassCommunicator&, const ClassCommunicator&) = default;
};

struct RankClasses {
    std::vector<AlikeRanks> classes;
    std::vector<ClassCommunicator> communicators;
    /// The class of `rank`.
    std::uint32_t class_of(std::uint64_t rank) const;
    friend bool operator==(const RankClasses&, const RankClasses&) = default;
};

/// The coarsest classes of the plan's ranks when `what_if` breaks their symmetry (colour refinement over
/// ranks, their communicators and the links that these cross): with data parallelism alone a straggler and
/// the others.
RankClasses rank_classes(const Plan& plan, const WhatIf& what_if = {});
/// The same with the job at `sites`.
RankClasses rank_classes(const Plan& plan, const WhatIf& what_if, const JobSites& sites);

/// The plan with every rank group split into its classes, so that reports and traces show them apart.
Plan split_rank_groups(Plan plan, const RankClasses& classes);

/// `program` as the ranks of class `index` run it: computing takes longer by their factor, collectives and
/// messages as the slowest link of their communicator lets them.
TimedProgram as_class(const TimedProgram& program, const RankClasses& classes, std::uint32_t index,
                      const LinkRates& rates);

/// A collective one of whose members has its links at these fractions: the flow on them, and what
/// measurements show beyond NCCL's law in proportion.
CollectiveCost on_slow_links(CollectiveCost cost, const LinkRates& rates, double gpu_link_factor,
                             double nic_factor);

/// The step in closed form with every program at the speed of its slowest rank and slowest communicators:
/// exact where all ranks run one program and meet in all their collectives and no two streams share a link.
std::vector<StepTimeline> closed_form_steps(const Plan& plan, const RankClasses& classes);

}  // namespace zeroplan
