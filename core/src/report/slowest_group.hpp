#pragma once
#include <algorithm>

#include "zeroplan/report.hpp"

namespace zeroplan {

/// The rank group that a step waits for. Throws Error{invalid_input} for a report without any.
inline const StepTimeline& slowest_group(const SimReport& report) {
    if (report.rank_groups.empty())
        throw Error(ErrorCode::invalid_input, "the simulation reports no rank group");
    return *std::max_element(
        report.rank_groups.begin(), report.rank_groups.end(),
        [](const StepTimeline& a, const StepTimeline& b) { return a.step_time_s < b.step_time_s; });
}

/// Its index.
inline std::uint32_t number_of_slowest(const SimReport& report) {
    return static_cast<std::uint32_t>(&slowest_group(report) - report.rank_groups.data());
}

}  // namespace zeroplan
