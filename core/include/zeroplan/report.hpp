#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeroplan/category.hpp"
#include "zeroplan/plan.hpp"
#include "zeroplan/step_timeline.hpp"

namespace zeroplan {

/// Share of one link class's capacity that a step used.
struct LinkLoad {
    std::string name;         ///< "nic rail 0", "nvlink"
    std::uint64_t links = 1;  ///< how many real links the class stands for
    double bytes_per_s = 0;   ///< capacity of one
    double bytes = 0;         ///< carried by one in a step
    double utilisation = 0;   ///< bytes / (capacity · step time)
};

/// Outcome of `zeroplan sim`: the time line of every rank group.
struct SimReport {
    std::vector<StepTimeline> rank_groups;  ///< same order as Plan::rank_groups
    StepTimeline closed_form;               ///< of rank group 0, for comparison
    Throughput throughput;
    std::vector<LinkLoad> links;
    double wall_s = 0;  ///< what the simulation itself took
};

/// What one rank measured.
struct RankMeasurement {
    std::uint64_t rank = 0;
    Bytes peak_allocated;  ///< arena's peak of a steady step
    CategoryBytes at_peak;
    Bytes resident;
    Bytes process_peak;          ///< VmHWM growth since start-up
    Bytes process_peak_planned;  ///< the arena's own peak over the same span, to compare with
    std::optional<Bytes> device_peak;
};

/// Outcome of `zeroplan run`.
struct RunReport {
    std::string backend;  ///< "host" or "cuda"
    std::uint64_t world_size = 1;
    std::vector<double> losses;         ///< one a step, mean over all ranks' samples
    std::vector<double> step_times_s;   ///< of the slowest rank
    std::uint64_t steps_per_epoch = 0;  ///< 0: not known
    std::string final_parameters_sha256;
    std::vector<RankMeasurement> ranks;
    double wall_s = 0;
};

/// Where a plan and a run differ or agree, per rank and category.
struct Agreement {
    std::uint64_t rank = 0;
    Category category = Category::parameters;
    Bytes planned, measured;
};
std::vector<Agreement> agreement(const Plan& plan, const RunReport& report);

/// Options of the text renderings.
struct TextStyle {
    bool colour = false;
    std::size_t width = 100;
};
/// Verdict, remedies, peak, ingredients, phases, host RAM, communication volume; `defaults` are those that
/// the scenario took (defaults_taken()), so that none is silent.
std::string plan_text(const Plan& plan, const TextStyle& style = {},
                      const std::vector<std::string>& defaults = {});
/// One line a rank group: ranks, bytes of every category at the peak, allocated, reserved, runtime, device.
std::string plan_csv(const Plan& plan);
std::string sim_text(const Plan& plan, const SimReport& report, const TextStyle& style = {});
std::string run_text(const Plan& plan, const RunReport& report, const TextStyle& style = {});

}  // namespace zeroplan
