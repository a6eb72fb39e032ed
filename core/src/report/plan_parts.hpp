#pragma once
#include "report/text_page.hpp"
#include "zeroplan/plan.hpp"

namespace zeroplan {

/// Parts of the plan's text that the reports of simulation and run show, too.

/// "fits: 63.1 of 79.1 GiB (67.8 of 84.9 GB) of device memory on every GPU, 16.0 GiB headroom", in colour.
void add_verdict(TextPage& page, const Plan& plan);
/// Where it doesn't fit: the changes that would make it fit, with their peak and price.
void add_remedies(TextPage& page, const Plan& plan);
/// Model, training and cluster in a line or two each.
void add_scenario(TextPage& page, const Plan& plan);
void add_warnings(TextPage& page, const Plan& plan);
/// Which figures are exact, calibrated, assumed, and where they come from.
void add_trust(TextPage& page, const Plan& plan);

/// The rank group that `rank` belongs to.
const RankGroup& group_of(const Plan& plan, std::uint64_t rank);
/// "rank 3", "ranks 0-6"
std::string ranks_in_words(const std::vector<RankRange>& ranks);
/// "gathered_parameters" → "gathered parameters"
std::string in_words(std::string_view snake_case);

}  // namespace zeroplan
