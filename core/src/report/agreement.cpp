#include "report/plan_parts.hpp"
#include "zeroplan/report.hpp"

namespace zeroplan {

std::vector<Agreement> agreement(const Plan& plan, const RunReport& report) {
    std::vector<Agreement> rows;
    rows.reserve(report.ranks.size() * category_count);
    for (const RankMeasurement& rank : report.ranks) {
        const CategoryBytes& planned = group_of(plan, rank.rank).steady.at_peak;
        for (const Category category : all_categories)
            rows.push_back({rank.rank, category, planned[category], rank.at_peak[category]});
    }
    return rows;
}

}  // namespace zeroplan
