#include "live_until.hpp"

#include <algorithm>

#include "zeroplan/memory_timeline.hpp"

namespace zeroplan {

std::vector<BufferId> live_until(std::span<const Section> sections, std::uint32_t section,
                                 OperationId operation, std::span<const BufferId> before) {
    if (section >= sections.size()) return live_after(sections, before);
    std::vector<BufferId> live = live_after(sections.first(section), before);
    const std::vector<Operation>& operations = sections[section].operations;
    for (OperationId o = 0; o < operations.size() && o <= operation; ++o) {
        if (const auto* allocation = std::get_if<Allocate>(&operations[o].body))
            live.push_back(allocation->buffer);
        else if (const auto* release = std::get_if<Free>(&operations[o].body))
            live.erase(std::next(std::find(live.rbegin(), live.rend(), release->buffer)).base());
    }
    return live;
}

}  // namespace zeroplan
