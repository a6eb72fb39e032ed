#pragma once
#include <memory>

#include "zeroplan/gui/step_memory.hpp"
#include "zeroplan/gui/stream_lanes.hpp"

namespace zeroplan::gui {

/// What the views show of one rank group; what needs a timeline is empty without one.
struct GroupView {
    std::uint32_t rank_group = 0;
    StepMemory by_operation, by_time;
    StreamLanes lanes;
};
GroupView group_view(const std::shared_ptr<const Plan>& plan, std::uint32_t rank_group,
                     const StepTimeline* timeline);

}  // namespace zeroplan::gui
