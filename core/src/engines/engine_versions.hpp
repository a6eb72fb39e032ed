#pragma once
#include <string>
#include <vector>

#include "zeroplan/plan.hpp"

namespace zeroplan {

/// Whether `engine_version` names releases that the engine's rules describe: a product and a number in its
/// range, a commit, or a branch ("megatron-core 0.12", "torch 38410cf9", "megatron-core main"). A number
/// alone is one of the engine's own product.
bool is_known_version(EngineKind engine, const std::string& engine_version);

/// A version outside every range takes the nearest rules, `rule_set`, and is warned of.
std::vector<Warning> version_warnings(const TrainingConfig& training, const std::string& rule_set);

}  // namespace zeroplan
