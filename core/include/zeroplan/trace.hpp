#pragma once
#include <string>
#include <vector>

#include "zeroplan/category.hpp"
#include "zeroplan/plan.hpp"
#include "zeroplan/step_memory.hpp"
#include "zeroplan/step_timeline.hpp"

namespace zeroplan {

/// Live bytes from `time_s` of a step on, and which operation made them so; the first point, which is before
/// any operation, names none.
struct MemoryPoint {
    double time_s = 0;
    CategoryBytes live;
    std::uint32_t section = 0;
    std::uint64_t iteration = 0;
    OperationId operation = 0;
    friend bool operator==(const MemoryPoint&, const MemoryPoint&) = default;
};

/// Memory of a rank group over a timed step, from what is resident at its start. Allocations and releases are
/// drawn where the compute stream passes them; the host, which runs ahead, makes them earlier. Times never
/// decrease.
std::vector<MemoryPoint> memory_over_time(const Plan& plan, std::uint32_t rank_group,
                                          const StepTimeline& timeline);
/// The same, of a step_memory() that is at hand.
std::vector<MemoryPoint> memory_over_time(const Plan& plan, std::uint32_t rank_group,
                                          const StepTimeline& timeline, const StepMemory& memory);

/// Chrome trace JSON, as Perfetto reads it: a process for every rank group, a thread for every stream, a
/// counter each with the memory by category and the load of a GPU's links; operations say whether they are on
/// the critical path. `timelines` as in SimReport::rank_groups; times in microseconds.
std::string trace_json(const Plan& plan, const std::vector<StepTimeline>& timelines);

/// Every operation with its times: rank_group, section, iteration, stream, operation, start_s,
/// end_s, critical: 1 on the critical path.
std::string step_csv(const Plan& plan, const std::vector<StepTimeline>& timelines);

}  // namespace zeroplan
