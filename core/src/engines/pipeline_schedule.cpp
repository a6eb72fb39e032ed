#include "engines/pipeline_schedule.hpp"

#include <algorithm>

namespace zeroplan {
namespace {

using Actions = std::vector<PipelineAction>;

/// `warm_up` forwards, then forward and backward in turn, then the backwards left over.
Actions one_forward_one_backward(const Actions& forwards, const Actions& backwards, std::size_t warm_up) {
    warm_up = std::min(warm_up, forwards.size());
    Actions actions(forwards.begin(), forwards.begin() + static_cast<std::ptrdiff_t>(warm_up));
    std::size_t done = 0;
    for (std::size_t f = warm_up; f < forwards.size(); ++f) {
        actions.push_back(forwards[f]);
        actions.push_back(backwards[done++]);
    }
    actions.insert(actions.end(), backwards.begin() + static_cast<std::ptrdiff_t>(done), backwards.end());
    return actions;
}

/// Chunks in turn, a group of `stages` micro-batches each.
Actions interleaved_order(const PipelineShape& shape, bool forward) {
    Actions actions;
    for (std::uint32_t first = 0; first < shape.micro_batches; first += shape.stages)
        for (std::uint32_t c = 0; c < shape.chunks; ++c)
            for (std::uint32_t m = first; m < std::min(first + shape.stages, shape.micro_batches); ++m)
                actions.push_back({forward, m, forward ? c : shape.chunks - 1 - c});
    return actions;
}

}  // namespace

Actions pipeline_schedule(const PipelineShape& shape, std::uint32_t stage) {
    const std::uint32_t later_stages = shape.stages - 1 - stage;
    if (shape.chunks > 1) {
        const std::size_t warm_up = 2ULL * later_stages + std::size_t{shape.chunks - 1} * shape.stages;
        return one_forward_one_backward(interleaved_order(shape, true), interleaved_order(shape, false),
                                        warm_up);
    }
    Actions forwards, backwards;
    for (std::uint32_t m = 0; m < shape.micro_batches; ++m) {
        forwards.push_back({true, m, 0});
        backwards.push_back({false, m, 0});
    }
    const bool all_forward_first = shape.schedule == PipelineSchedule::gpipe && shape.stages > 1;
    return one_forward_one_backward(forwards, backwards, all_forward_first ? forwards.size() : later_stages);
}

std::uint64_t peak_in_flight(const Actions& actions) {
    std::uint64_t live = 0, peak = 0;
    for (const PipelineAction& action : actions) {
        live = action.forward ? live + 1 : live - 1;
        peak = std::max(peak, live);
    }
    return peak;
}

}  // namespace zeroplan
