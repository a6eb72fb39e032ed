#pragma once
#include "zeroplan/model_spec.hpp"
#include "zeroplan/training_config.hpp"

namespace zeroplan {

/// The model as it is trained: with the adapter that `training` asks for, and with its frozen parameters.
ModelSpec as_trained(ModelSpec model, const TrainingConfig& training);

}  // namespace zeroplan
