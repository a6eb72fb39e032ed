#pragma once
#include <functional>
#include <string>
#include <vector>

#include "import/config_object.hpp"
#include "zeroplan/build_model.hpp"

namespace zeroplan {

/// A config.json, understood.
struct ReadConfig {
    DecoderConfig decoder;  ///< or the layers of another architecture, which `build` then knows
    std::function<ModelSpec(const LoweringOptions&)> build;  ///< of what is no decoder alone
    bool dropout = false;
    std::vector<std::string> notes;  ///< what was assumed or left out
};

/// Reads the body of a Hugging Face config.json, or of SCENARIO.md's generic `gpt` and `llama`, with our
/// extra keys. Absent keys take the defaults of the model_type's own class; keys that change no shape are
/// ignored, but one that looks like a misspelt shape is an error, and beside a preset or file every unknown
/// key is. Throws Error{not_supported} for families that are not built, Error{invalid_input} for sizes that
/// cannot be.
ReadConfig read_config(const ConfigObject& config, const std::string& name);

/// The same for a decoder alone, whichever object of a file it stands in (a nested "text_config").
ReadConfig read_decoder_config(const ConfigObject& config, const std::string& name);

/// The model of a configuration.
ModelSpec build_model(const ReadConfig& config, LoweringOptions options);

}  // namespace zeroplan
