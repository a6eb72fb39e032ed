#include "zeroplan/gui/group_view.hpp"

namespace zeroplan::gui {

GroupView group_view(const std::shared_ptr<const Plan>& plan, std::uint32_t rank_group,
                     const StepTimeline* timeline) {
    const zeroplan::StepMemory live = step_memory(*plan, rank_group);
    GroupView view{rank_group, memory_by_operation(*plan, rank_group, live), {}, {}};
    if (timeline == nullptr) return view;
    view.by_time = memory_by_time(*plan, rank_group, *timeline, live);
    view.lanes = StreamLanes(plan, rank_group, *timeline);
    return view;
}

}  // namespace zeroplan::gui
