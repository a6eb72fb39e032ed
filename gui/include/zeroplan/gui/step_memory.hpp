#pragma once
#include <vector>

#include "zeroplan/gui/text.hpp"
#include "zeroplan/plan.hpp"
#include "zeroplan/step_memory.hpp"
#include "zeroplan/step_timeline.hpp"

namespace zeroplan::gui {

/// What the horizontal axis of the step's memory means.
enum class StepAxis : std::uint8_t {
    operations,  ///< position in issue order; exact, since memory needs no clock
    time         ///< seconds of a StepTimeline
};

/// Live bytes from `at` until the next moment.
struct StepMoment {
    double at = 0;
    std::uint32_t section = 0;
    OperationId operation = 0;
    bool before_step = false;  ///< the state a step starts from: no operation was issued yet
    CategoryBytes live;
    double total = 0;  ///< bytes
};

/// One repetition of a section on the axis.
struct StepSpan {
    double begin = 0, end = 0;
    QString name;
};

/// Memory of one rank group over a steady step, for plotting.
struct StepMemory {
    StepAxis axis = StepAxis::operations;
    std::vector<StepMoment> moments;  ///< `at` never decreases
    std::vector<StepSpan> sections;
    std::vector<StepSpan> omitted;  ///< where repetitions are left out that look like those around
    double end = 0;
    /// Index of the moment that holds at `x`; 0 before the first.
    std::size_t moment_at(double x) const;
};

/// A repeated section appears once, in its fullest run, with its count in its name. `live`: core's
/// step_memory() of the group.
StepMemory memory_by_operation(const Plan& plan, std::uint32_t rank_group, const zeroplan::StepMemory& live);
StepMemory memory_by_operation(const Plan& plan, std::uint32_t rank_group);

/// Every repetition that `timeline` lists, at the times of core's memory_over_time().
StepMemory memory_by_time(const Plan& plan, std::uint32_t rank_group, const StepTimeline& timeline,
                          const zeroplan::StepMemory& live);
StepMemory memory_by_time(const Plan& plan, std::uint32_t rank_group, const StepTimeline& timeline);

/// Operation, position and every digit of who is live at `moment`.
Description describe_moment(const Plan& plan, std::uint32_t rank_group, const StepMemory& memory,
                            const StepMoment& moment, bool dark);

}  // namespace zeroplan::gui
