#include "import/config_moe.hpp"

#include <nlohmann/json.hpp>

namespace zeroplan {
namespace {

/// Every second layer attends to a window of 128 tokens unless the file says otherwise.
void read_gpt_oss(const ConfigObject& config, DecoderConfig& decoder) {
    constexpr std::uint64_t window = 128;
    decoder.attention_sinks = true;
    decoder.attention_bias = decoder.attention_output_bias = config.boolean("attention_bias").value_or(true);
    if (!config.holder("sliding_window").value().contains("sliding_window")) decoder.sliding_window = window;
}

// Defaults of transformers' configuration_<model_type>.py.
constexpr ConfigFamily families[] = {
    {.model_type = "gpt_oss",
     .architecture = "GptOssForCausalLM",
     .names = "gpt_oss",
     .experts = ExpertFamily::gpt_oss,
     .read_own = read_gpt_oss},
};

}  // namespace

std::span<const ConfigFamily> moe_families() {
    return families;
}

}  // namespace zeroplan
