#include <fmt/format.h>

#include "zeroplan/report.hpp"

namespace zeroplan {

std::string plan_csv(const Plan& plan) {
    std::string text = "ranks";
    for (const Category category : all_categories) text += fmt::format(",{}_bytes", to_string(category));
    text += ",peak_allocated_bytes,peak_reserved_bytes,runtime_bytes,peak_device_bytes,resident_bytes\n";
    for (const RankGroup& group : plan.rank_groups) {
        // Ranks may hold commas.
        text += fmt::format("\"{}\"", to_string(group.ranks));
        for (const Category category : all_categories)
            text += fmt::format(",{}", group.steady.at_peak[category].count());
        text += fmt::format(",{},{},{},{},{}\n", group.steady.allocated.count(), group.peak_reserved.count(),
                            group.runtime.count(), group.peak_device.count(), group.resident.count());
    }
    return text;
}

}  // namespace zeroplan
