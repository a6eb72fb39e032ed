#pragma once
#include <nlohmann/json_fwd.hpp>

#include "training_input.hpp"

namespace zeroplan {

class ObjectReader;

/// The objects inside `training`: `fsdp` typed; `deepspeed`, `megatron`, `adapter`, `fp8` and `moe` checked
/// as far as SCENARIO.md lists their keys and kept as text. Throws Error{invalid_input} for an object of
/// another engine.
void read_engine_objects(TrainingInput& input, const ObjectReader& training);

void write_engine_objects(nlohmann::ordered_json& training, const TrainingConfig& config);

}  // namespace zeroplan
