#pragma once
#include <optional>
#include <string>
#include <vector>

#include "report/text_page.hpp"
#include "zeroplan/compare.hpp"
#include "zeroplan/plan.hpp"

namespace zeroplan::tool {

/// One ZeRO stage of the model that is planned; `simulated` is nothing where the simulator was not built.
struct PlannedStage {
    Plan plan;
    std::optional<ComparableReport> simulated;
};
/// One ZeRO stage of the model that is trained.
struct TrainedStage {
    ComparableReport planned, measured;
};

/// What every stage needs on the fullest GPU, whether it fits, how long a step takes.
void add_planned_stages(TextPage& page, const std::vector<PlannedStage>& stages);

/// Losses on the way, and whether the stages end with the same parameters.
void add_losses(TextPage& page, const std::vector<TrainedStage>& stages);

/// Planned and measured bytes of every category on every rank, ranks that are the same together.
void add_measured_memory(TextPage& page, const std::vector<TrainedStage>& stages);

}  // namespace zeroplan::tool
