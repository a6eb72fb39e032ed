#include "import/config_families.hpp"

#include <algorithm>
#include <vector>

#include "import/config_gpt_like.hpp"
#include "import/config_llama_like.hpp"
#include "import/config_moe.hpp"

namespace zeroplan {
namespace {

// Defaults of transformers' configuration_<model_type>.py; "gpt" is SCENARIO.md's generic decoder.
constexpr ConfigFamily llama_and_gpt2[] = {
    {.model_type = "llama",
     .architecture = "LlamaForCausalLM",
     .reads_attention_bias = true,
     .reads_mlp_bias = true},
    {.model_type = "mistral", .architecture = "MistralForCausalLM"},
    {.model_type = "qwen2",
     .architecture = "Qwen2ForCausalLM",
     // fixed in the class: no key mentions it
     .biases = {.query_key_value = true}},
    // The language models of their classes with images.
    {.model_type = "qwen2_vl_text",
     .architecture = "Qwen2VLForConditionalGeneration without its vision tower",
     .biases = {.query_key_value = true}},
    {.model_type = "qwen2_5_vl_text",
     .architecture = "Qwen2_5_VLForConditionalGeneration without its vision tower",
     .biases = {.query_key_value = true}},
    {.model_type = "qwen3",
     .architecture = "Qwen3ForCausalLM",
     .reads_attention_bias = true,
     .query_key_norm = true},
    {.model_type = "mixtral", .architecture = "MixtralForCausalLM", .experts = ExpertFamily::mixtral},
    {.model_type = "qwen2_moe",
     .architecture = "Qwen2MoeForCausalLM",
     .biases = {.query_key_value = true},
     .experts = ExpertFamily::qwen2},
    {.model_type = "qwen3_moe",
     .architecture = "Qwen3MoeForCausalLM",
     .reads_attention_bias = true,
     .query_key_norm = true,
     .experts = ExpertFamily::qwen3},
    {.model_type = "deepseek_v2",
     .architecture = "DeepseekV2ForCausalLM",
     .reads_attention_bias = true,
     .experts = ExpertFamily::deepseek,
     .latent_attention = true},
    {.model_type = "deepseek_v3",
     .architecture = "DeepseekV3ForCausalLM",
     .reads_attention_bias = true,
     .experts = ExpertFamily::deepseek,
     .latent_attention = true},
    {.model_type = "gpt2",
     .architecture = "GPT2LMHeadModel",
     .mlp = "gelu",
     .position_embedding = "learned",
     .normalization = "layernorm",
     .biases = every_bias,
     .tie_word_embeddings = true,
     .names = "gpt2",
     .activation = "gelu_new"},
    {.model_type = "gpt",
     .architecture = "generic GPT",
     .mlp = "gelu",
     .position_embedding = "learned",
     .normalization = "layernorm",
     .biases = every_bias,
     .tie_word_embeddings = true,
     .names = "gpt2"},
};

constexpr std::string_view unsupported[] = {
    "albert",     "baichuan",   "bart",       "chatglm",     "clip",     "codegen",
    "dbrx",       "deberta",    "deberta-v2", "electra",     "ernie4_5", "falcon_mamba",
    "glm",        "granitemoe", "internlm2",  "jamba",       "llama4",   "llava_next",
    "longformer", "mamba2",     "mbart",      "minicpm",     "mllama",   "modernbert",
    "nemotron",   "persimmon",  "qwen3_next", "rwkv",        "siglip",   "swin",
    "umt5",       "wav2vec2",   "whisper",    "xlm-roberta", "xlnet",    "zamba2"};

/// All of them; a table a kin.
const std::vector<ConfigFamily>& all_families() {
    static const std::vector<ConfigFamily> all = [] {
        std::vector<ConfigFamily> families(std::begin(llama_and_gpt2), std::end(llama_and_gpt2));
        for (const auto& more : {gpt_like_families(), llama_like_families(), moe_families()})
            families.insert(families.end(), more.begin(), more.end());
        return families;
    }();
    return all;
}

template <class Is>
const ConfigFamily* find_family(Is is) {
    const auto& families = all_families();
    const auto found = std::find_if(families.begin(), families.end(), is);
    return found == families.end() ? nullptr : &*found;
}

}  // namespace

std::span<const ConfigFamily> config_families() {
    return all_families();
}

const ConfigFamily* find_config_family(std::string_view model_type) {
    return find_family([=](const ConfigFamily& family) { return family.model_type == model_type; });
}

const ConfigFamily* find_family_of_class(std::string_view architecture) {
    return find_family([=](const ConfigFamily& family) { return family.architecture == architecture; });
}

std::span<const std::string_view> unsupported_model_types() {
    return unsupported;
}

}  // namespace zeroplan
