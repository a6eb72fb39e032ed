#include "import/config_families.hpp"

#include <algorithm>

namespace zeroplan {
namespace {

// Defaults of transformers' configuration_<model_type>.py; "gpt" is SCENARIO.md's generic decoder.
constexpr ConfigFamily families[] = {
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
     .query_key_value_bias = false,
     .output_bias = false,
     .mlp_bias = false,
     .reads_attention_bias = true,
     .reads_mlp_bias = true,
     .tie_word_embeddings = false,
     .query_key_norm = false,
     .gpt2_names = false},
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
     .normalization = "rmsnorm",
     .query_key_value_bias = false,
     .output_bias = false,
     .mlp_bias = false,
     .reads_attention_bias = false,
     .reads_mlp_bias = false,
     .tie_word_embeddings = false,
     .query_key_norm = false,
     .gpt2_names = false},
    {.model_type = "qwen2",
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
     .output_bias = false,
     .mlp_bias = false,
     .reads_attention_bias = false,
     .reads_mlp_bias = false,
     .tie_word_embeddings = false,
     .query_key_norm = false,
     .gpt2_names = false},
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
     .query_key_value_bias = false,
     .output_bias = false,
     .mlp_bias = false,
     .reads_attention_bias = true,
     .reads_mlp_bias = false,
     .tie_word_embeddings = false,
     .query_key_norm = true,
     .gpt2_names = false},
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
     .reads_attention_bias = false,
     .reads_mlp_bias = false,
     .tie_word_embeddings = true,
     .query_key_norm = false,
     .gpt2_names = true},
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
     .reads_attention_bias = false,
     .reads_mlp_bias = false,
     .tie_word_embeddings = true,
     .query_key_norm = false,
     .gpt2_names = true},
};

constexpr std::string_view unsupported[] = {
    "albert",      "baichuan",   "bart",       "bert",        "bloom",      "chatglm",    "clip",
    "codegen",     "cohere",     "cohere2",    "dbrx",        "deberta",    "deberta-v2", "deepseek_v2",
    "deepseek_v3", "dinov2",     "distilbert", "electra",     "ernie4_5",   "falcon",     "falcon_mamba",
    "gemma",       "gemma2",     "gemma3",     "gemma3_text", "glm",        "glm4",       "glm4_moe",
    "gpt_bigcode", "gpt_neo",    "gpt_neox",   "gpt_oss",     "gptj",       "granite",    "granitemoe",
    "internlm2",   "jamba",      "llama4",     "llama4_text", "llava",      "llava_next", "longformer",
    "mamba",       "mamba2",     "mbart",      "minicpm",     "mixtral",    "mllama",     "modernbert",
    "mpt",         "mt5",        "nemotron",   "olmo",        "olmo2",      "olmoe",      "opt",
    "persimmon",   "phi",        "phi3",       "phimoe",      "qwen2_5_vl", "qwen2_moe",  "qwen2_vl",
    "qwen3_moe",   "qwen3_next", "roberta",    "rwkv",        "siglip",     "smollm3",    "stablelm",
    "starcoder2",  "swin",       "t5",         "umt5",        "vit",        "wav2vec2",   "whisper",
    "xlm-roberta", "xlnet",      "zamba2"};

template <class Is>
const ConfigFamily* find_family(Is is) {
    const auto found = std::find_if(std::begin(families), std::end(families), is);
    return found == std::end(families) ? nullptr : found;
}

}  // namespace

std::span<const ConfigFamily> config_families() {
    return families;
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
