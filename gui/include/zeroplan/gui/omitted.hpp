#pragma once
#include <cstdint>
#include <vector>

#include "zeroplan/step_timeline.hpp"

namespace zeroplan::gui {

/// Repetitions of a section that a StepTimeline counts but doesn't list, since they only repeat the pattern.
struct Omitted {
    double begin_s = 0, end_s = 0;
    std::uint32_t section = 0;
    std::uint64_t iterations = 0;
    friend bool operator==(const Omitted&, const Omitted&) = default;
};
std::vector<Omitted> omitted_iterations(const StepTimeline& timeline);

}  // namespace zeroplan::gui
