#pragma once
#include <span>

#include "json/scenario_document.hpp"

namespace zeroplan {

/// Where an imported file states train_batch_size: puts the micro-batch or the accumulation steps that follow
/// from it and the ranks into the document. Throws Error{invalid_input} in that file if the three contradict
/// each other, whoever stated them.
void complete_batch(ScenarioDocument& document, std::span<const ImportedScenario> imported);

}  // namespace zeroplan
