#pragma once
#include "import/deepspeed_section.hpp"

namespace zeroplan {

/// zero_optimization: states what it means for the scenario and notes what DeepSpeed makes of each key.
/// Returns the stage.
std::uint32_t import_zero(const DeepSpeedSection& zero, const ImportContext& context);

/// The values that decide memory and communication at `stage`, defaults filled in, as figures.
void resolve_zero(const DeepSpeedSection& zero, std::uint32_t stage, const ImportContext& context);

/// What "auto" becomes in Hugging Face's integration, for the keys that follow from the model; nothing for
/// others. source: transformers/integrations/deepspeed.py, trainer_config_finalize
std::optional<std::uint64_t> automatic_count(std::string_view key, std::uint64_t hidden_size);

}  // namespace zeroplan
