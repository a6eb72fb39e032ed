#include "zeroplan/gui/omitted.hpp"

#include <algorithm>

namespace zeroplan::gui {

namespace {

// When the iteration whose first listed operation is `first` begins, on whatever stream.
double begin_of_iteration(const std::vector<TimedOperation>& operations, std::size_t first) {
    double begin = operations[first].start_s;
    for (std::size_t i = first; i < operations.size() && operations[i].section == operations[first].section &&
                                operations[i].iteration == operations[first].iteration;
         ++i)
        begin = std::min(begin, operations[i].start_s);
    return begin;
}

}  // namespace

std::vector<Omitted> omitted_iterations(const StepTimeline& timeline) {
    const auto& operations = timeline.operations;
    std::vector<Omitted> gaps;
    double end = 0;  // of all that was issued so far
    for (std::size_t i = 0; i < operations.size(); ++i) {
        if (i > 0 && operations[i].section == operations[i - 1].section &&
            operations[i].iteration > operations[i - 1].iteration + 1)
            gaps.push_back({end, std::max(end, begin_of_iteration(operations, i)), operations[i].section,
                            operations[i].iteration - operations[i - 1].iteration - 1});
        end = std::max(end, operations[i].end_s);
    }
    return gaps;
}

}  // namespace zeroplan::gui
