#pragma once
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "zeroplan/build_model.hpp"
#include "zeroplan/error.hpp"

namespace zeroplan {

/// `model` of a scenario (SCENARIO.md): {"preset": NAME}, {"file": config.json | .safetensors | index.json |
/// folder}, the body of a config.json, or {"layers": […]}; further keys override the preset's or the file's.
/// Relative files are looked up in `base_directory` ("" = the working directory). `place` is where the object
/// stands. Throws Error{invalid_input | not_supported | not_found | io} with place, both values and a way
/// out.
ModelSpec read_model(const nlohmann::json& model, const std::string& base_directory,
                     const LoweringOptions& options, ErrorPlace place = {});

}  // namespace zeroplan
