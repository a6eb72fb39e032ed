#include "import/config_families.hpp"

#include <algorithm>
#include <vector>

#include "import/config_gpt_like.hpp"
#include "import/config_llama_like.hpp"

namespace zeroplan {
namespace {

// Defaults of transformers' configuration_<model_type>.py; "gpt" is SCENARIO.md's generic decoder.
constexpr ConfigFamily llama_and_gpt2[] = {
    {.model_type = "llama",
     .architecture = "LlamaForCausalLM",
     .vocab_size = 32000,
     .hidden_size = 4096,
     .intermediate_size = 11008,
     .num_hidden_layers = 32,
     .num_attention_heads = 32,
     .num_key_value_heads = 0,
     .head_dim = 0,
     .max_position_embeddings = 2048,
     .mlp = "swiglu",
     .position_embedding = "rope",
     .normalization = "rmsnorm",
     .reads_attention_bias = true,
     .reads_mlp_bias = true},
    {.model_type = "mistral",
     .architecture = "MistralForCausalLM",
     .vocab_size = 32000,
     .hidden_size = 4096,
     .intermediate_size = 14336,
     .num_hidden_layers = 32,
     .num_attention_heads = 32,
     .num_key_value_heads = 8,
     .head_dim = 0,
     .max_position_embeddings = 131072,
     .mlp = "swiglu",
     .position_embedding = "rope",
     .normalization = "rmsnorm"},
    {
        .model_type = "qwen2",
        .architecture = "Qwen2ForCausalLM",
        .vocab_size = 151936,
        .hidden_size = 4096,
        .intermediate_size = 22016,
        .num_hidden_layers = 32,
        .num_attention_heads = 32,
        .num_key_value_heads = 32,
        .head_dim = 0,
        .max_position_embeddings = 32768,
        .mlp = "swiglu",
        .position_embedding = "rope",
        .normalization = "rmsnorm",
        .query_key_value_bias = true,  // fixed in the class: no key mentions it
    },
    {.model_type = "qwen3",
     .architecture = "Qwen3ForCausalLM",
     .vocab_size = 151936,
     .hidden_size = 4096,
     .intermediate_size = 22016,
     .num_hidden_layers = 32,
     .num_attention_heads = 32,
     .num_key_value_heads = 32,
     .head_dim = 128,
     .max_position_embeddings = 32768,
     .mlp = "swiglu",
     .position_embedding = "rope",
     .normalization = "rmsnorm",
     .reads_attention_bias = true,
     .query_key_norm = true},
    {.model_type = "mixtral",
     .architecture = "MixtralForCausalLM",
     .vocab_size = 32000,
     .hidden_size = 4096,
     .intermediate_size = 14336,
     .num_hidden_layers = 32,
     .num_attention_heads = 32,
     .num_key_value_heads = 8,
     .head_dim = 0,
     .max_position_embeddings = 131072,
     .mlp = "swiglu",
     .position_embedding = "rope",
     .normalization = "rmsnorm",
     .experts = ExpertFamily::mixtral},
    {.model_type = "qwen2_moe",
     .architecture = "Qwen2MoeForCausalLM",
     .vocab_size = 151936,
     .hidden_size = 2048,
     .intermediate_size = 5632,
     .num_hidden_layers = 24,
     .num_attention_heads = 16,
     .num_key_value_heads = 16,
     .head_dim = 0,
     .max_position_embeddings = 32768,
     .mlp = "swiglu",
     .position_embedding = "rope",
     .normalization = "rmsnorm",
     .query_key_value_bias = true,
     .experts = ExpertFamily::qwen2},
    {.model_type = "qwen3_moe",
     .architecture = "Qwen3MoeForCausalLM",
     .vocab_size = 151936,
     .hidden_size = 2048,
     .intermediate_size = 6144,
     .num_hidden_layers = 24,
     .num_attention_heads = 32,
     .num_key_value_heads = 4,
     .head_dim = 0,
     .max_position_embeddings = 32768,
     .mlp = "swiglu",
     .position_embedding = "rope",
     .normalization = "rmsnorm",
     .reads_attention_bias = true,
     .query_key_norm = true,
     .experts = ExpertFamily::qwen3},
    {.model_type = "deepseek_v2",
     .architecture = "DeepseekV2ForCausalLM",
     .vocab_size = 32000,
     .hidden_size = 4096,
     .intermediate_size = 11008,
     .num_hidden_layers = 32,
     .num_attention_heads = 32,
     .num_key_value_heads = 0,
     .head_dim = 64,
     .max_position_embeddings = 2048,
     .mlp = "swiglu",
     .position_embedding = "rope",
     .normalization = "rmsnorm",
     .reads_attention_bias = true,
     .experts = ExpertFamily::deepseek,
     .latent_attention = true},
    {.model_type = "deepseek_v3",
     .architecture = "DeepseekV3ForCausalLM",
     .vocab_size = 129280,
     .hidden_size = 7168,
     .intermediate_size = 18432,
     .num_hidden_layers = 61,
     .num_attention_heads = 128,
     .num_key_value_heads = 0,
     .head_dim = 64,
     .max_position_embeddings = 4096,
     .mlp = "swiglu",
     .position_embedding = "rope",
     .normalization = "rmsnorm",
     .reads_attention_bias = true,
     .experts = ExpertFamily::deepseek,
     .latent_attention = true},
    {.model_type = "gpt2",
     .architecture = "GPT2LMHeadModel",
     .vocab_size = 50257,
     .hidden_size = 768,
     .intermediate_size = 0,
     .num_hidden_layers = 12,
     .num_attention_heads = 12,
     .num_key_value_heads = 0,
     .head_dim = 0,
     .max_position_embeddings = 1024,
     .mlp = "gelu",
     .position_embedding = "learned",
     .normalization = "layernorm",
     .query_key_value_bias = true,
     .output_bias = true,
     .mlp_bias = true,
     .tie_word_embeddings = true,
     .names = "gpt2",
     .activation = "gelu_new"},
    {.model_type = "gpt",
     .architecture = "generic GPT",
     .vocab_size = 0,
     .hidden_size = 0,
     .intermediate_size = 0,
     .num_hidden_layers = 0,
     .num_attention_heads = 0,
     .num_key_value_heads = 0,
     .head_dim = 0,
     .max_position_embeddings = 0,
     .mlp = "gelu",
     .position_embedding = "learned",
     .normalization = "layernorm",
     .query_key_value_bias = true,
     .output_bias = true,
     .mlp_bias = true,
     .tie_word_embeddings = true,
     .names = "gpt2"},
};

constexpr std::string_view unsupported[] = {
    "albert",       "baichuan", "bart",        "chatglm",    "clip",       "codegen",     "cohere",
    "cohere2",      "dbrx",     "deberta",     "deberta-v2", "distilbert", "electra",     "ernie4_5",
    "falcon_mamba", "glm",      "glm4",        "glm4_moe",   "gpt_oss",    "granitemoe",  "internlm2",
    "jamba",        "llama4",   "llama4_text", "llava_next", "longformer", "mamba2",      "mbart",
    "minicpm",      "mllama",   "modernbert",  "mt5",        "nemotron",   "olmo",        "olmoe",
    "persimmon",    "phimoe",   "qwen2_5_vl",  "qwen2_vl",   "qwen3_next", "roberta",     "rwkv",
    "siglip",       "swin",     "umt5",        "wav2vec2",   "whisper",    "xlm-roberta", "xlnet",
    "zamba2"};

/// All of them; a table a kin.
const std::vector<ConfigFamily>& all_families() {
    static const std::vector<ConfigFamily> all = [] {
        std::vector<ConfigFamily> families(std::begin(llama_and_gpt2), std::end(llama_and_gpt2));
        for (const auto& more : {gpt_like_families(), llama_like_families()})
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
