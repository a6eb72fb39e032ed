#pragma once
#include "training_input.hpp"

namespace zeroplan {

class ObjectReader;

/// What `training.deepspeed` says that has a word of its own in `training`: the stage, dtypes, offload to
/// host or NVMe (in DeepSpeed's old flags too) and the size of hpZ's groups. Throws Error{invalid_input}
/// where `training` says something else.
void read_deepspeed_words(TrainingInput& input, const ObjectReader& training, const ObjectReader& deepspeed);

}  // namespace zeroplan
