#pragma once
#include <span>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "training_input.hpp"

namespace zeroplan {

/// `training` of a scenario, every key typed and checked by itself; unknown keys, wrong words and numbers out
/// of range throw Error{invalid_input} at their place.
TrainingInput read_training(const nlohmann::json& training, ErrorPlace place);

/// Every key that `training` may have.
std::span<const std::string_view> training_keys();

/// All keys of `training`, as read_training takes them; those that hold nothing are left out.
nlohmann::ordered_json training_to_json(const TrainingConfig& training);

}  // namespace zeroplan
