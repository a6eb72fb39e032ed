#pragma once
#include <span>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "zeroplan/scenario.hpp"

namespace zeroplan {

/// `run` of a scenario. Data that isn't stated is 1000 synthetic samples of the model's width (plain stack)
/// or of `sequence_length` tokens. Throws Error{invalid_input} for synthetic data of another width than a
/// plain stack's.
RunConfig read_run(const nlohmann::json& run, const ModelSpec& model, std::uint64_t sequence_length,
                   ErrorPlace place);

/// Every key that `run` may have.
std::span<const std::string_view> run_keys();

nlohmann::ordered_json run_to_json(const RunConfig& run);

}  // namespace zeroplan
