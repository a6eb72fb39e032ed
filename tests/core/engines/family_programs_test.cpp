#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/engines/megatron_scenarios.hpp"
#include "core/engines/program_hazards.hpp"
#include "core/engines/torch_scenarios.hpp"
#include "engines/engine.hpp"
#include "import/model_reader.hpp"

namespace zeroplan {
namespace {

struct Family {
    const char* name;
    const char* config;
};

// Each family in a size that takes milliseconds: every kind of block, tie and context.
constexpr Family families[] = {
    {"mpt", R"({"model_type": "mpt", "d_model": 64, "n_heads": 4, "n_layers": 2, "vocab_size": 128,
                "dropout": true})"},
    {"bloom", R"({"model_type": "bloom", "hidden_size": 64, "n_head": 4, "n_layer": 2, "vocab_size": 128})"},
    {"falcon", R"({"model_type": "falcon", "hidden_size": 64, "num_attention_heads": 4,
                   "num_hidden_layers": 2, "vocab_size": 128})"},
    {"gpt_neox", R"({"model_type": "gpt_neox", "hidden_size": 64, "num_attention_heads": 4,
                     "intermediate_size": 256, "num_hidden_layers": 2, "vocab_size": 128,
                     "hidden_act": "gelu_fast"})"},
    {"gptj", R"({"model_type": "gptj", "n_embd": 64, "n_head": 4, "n_layer": 2, "vocab_size": 128})"},
    {"opt", R"({"model_type": "opt", "hidden_size": 64, "num_attention_heads": 4, "ffn_dim": 256,
                "num_hidden_layers": 2, "vocab_size": 128, "word_embed_proj_dim": 32,
                "do_layer_norm_before": false})"},
    {"phi3", R"({"model_type": "phi3", "hidden_size": 64, "num_attention_heads": 4,
                 "intermediate_size": 256, "num_hidden_layers": 2, "vocab_size": 128})"},
    {"gemma2", R"({"model_type": "gemma2", "hidden_size": 64, "num_attention_heads": 4,
                   "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 256,
                   "num_hidden_layers": 2, "vocab_size": 128})"},
    {"bert", R"({"model_type": "bert", "hidden_size": 64, "num_attention_heads": 4,
                 "intermediate_size": 256, "num_hidden_layers": 2, "vocab_size": 128, "dropout": true})"},
    {"bert_pretraining", R"({"model_type": "bert", "architectures": ["BertForPreTraining"],
                             "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 256,
                             "num_hidden_layers": 2, "vocab_size": 128})"},
    {"t5", R"({"model_type": "t5", "d_model": 64, "num_heads": 4, "d_kv": 16, "d_ff": 256, "num_layers": 3,
               "vocab_size": 128, "decoder_sequence_length": 24, "dropout": true})"},
    {"t5_gated", R"({"model_type": "t5", "d_model": 64, "num_heads": 4, "d_kv": 16, "d_ff": 256,
                     "num_layers": 2, "vocab_size": 128, "feed_forward_proj": "gated-gelu",
                     "tie_word_embeddings": false})"},
    {"vit", R"({"model_type": "vit", "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 256,
                "num_hidden_layers": 2, "image_size": 32})"},
    {"dinov2", R"({"model_type": "dinov2", "hidden_size": 64, "num_attention_heads": 4,
                   "num_hidden_layers": 2, "image_size": 28, "use_swiglu_ffn": true})"},
    {"mamba", R"({"model_type": "mamba", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 128})"},
    {"mixtral", R"({"model_type": "mixtral", "hidden_size": 64, "num_attention_heads": 4,
                    "num_key_value_heads": 2, "intermediate_size": 128, "num_hidden_layers": 2,
                    "vocab_size": 128, "num_local_experts": 4})"},
    {"deepseek_v3", R"({"model_type": "deepseek_v3", "hidden_size": 64, "num_attention_heads": 4,
                        "num_key_value_heads": 4, "intermediate_size": 128, "num_hidden_layers": 3,
                        "vocab_size": 128, "n_routed_experts": 8, "n_group": 2, "topk_group": 1,
                        "num_experts_per_tok": 2, "moe_intermediate_size": 32,
                        "first_k_dense_replace": 1, "q_lora_rank": 24, "kv_lora_rank": 16,
                        "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16})"},
    {"llava", R"({"model_type": "llava",
        "text_config": {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
                        "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 128},
        "vision_config": {"model_type": "clip_vision_model", "hidden_size": 32, "intermediate_size": 64,
                          "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 28,
                          "patch_size": 14}})"},
    {"gpt_oss", R"({"model_type": "gpt_oss", "hidden_size": 64, "num_attention_heads": 4,
                    "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 32,
                    "num_hidden_layers": 2, "vocab_size": 128, "num_local_experts": 4,
                    "num_experts_per_tok": 2})"},
    {"llama4_text", R"({"model_type": "llama4_text", "hidden_size": 64, "num_attention_heads": 4,
                        "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 32,
                        "intermediate_size_mlp": 64, "num_hidden_layers": 4, "vocab_size": 128,
                        "num_local_experts": 4, "interleave_moe_layer_step": 2,
                        "no_rope_layers": [1, 1, 0, 0]})"},
    {"olmo", R"({"model_type": "olmo", "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128,
                 "num_hidden_layers": 2, "vocab_size": 128, "clip_qkv": 8.0})"},
    {"glm4", R"({"model_type": "glm4", "hidden_size": 64, "num_attention_heads": 4, "head_dim": 16,
                 "num_key_value_heads": 2, "intermediate_size": 128, "num_hidden_layers": 2,
                 "vocab_size": 128})"},
    {"cohere", R"({"model_type": "cohere", "hidden_size": 64, "num_attention_heads": 4,
                   "intermediate_size": 128, "num_hidden_layers": 2, "vocab_size": 128,
                   "use_qk_norm": true})"},
    {"cohere2", R"({"model_type": "cohere2", "hidden_size": 64, "num_attention_heads": 4,
                    "intermediate_size": 128, "num_hidden_layers": 4, "vocab_size": 128})"},
    {"smollm3", R"({"model_type": "smollm3", "hidden_size": 64, "num_attention_heads": 4,
                    "num_key_value_heads": 2, "intermediate_size": 128, "num_hidden_layers": 4,
                    "vocab_size": 128})"},
    {"granite", R"({"model_type": "granite", "hidden_size": 64, "num_attention_heads": 4,
                    "intermediate_size": 128, "num_hidden_layers": 2, "vocab_size": 128})"},
    {"phimoe", R"({"model_type": "phimoe", "hidden_size": 64, "num_attention_heads": 4,
                   "num_key_value_heads": 2, "intermediate_size": 32, "num_hidden_layers": 2,
                   "vocab_size": 128, "num_local_experts": 4, "attention_bias": true,
                   "lm_head_bias": true})"},
    {"qwen2_vl", R"({"model_type": "qwen2_vl", "hidden_size": 64, "num_hidden_layers": 2,
                     "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128,
                     "vocab_size": 128, "image_size": 56,
                     "vision_config": {"depth": 2, "num_heads": 2, "embed_dim": 32, "hidden_size": 64}})"},
    {"qwen2_5_vl", R"({"model_type": "qwen2_5_vl", "image_size": 56,
        "text_config": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
                        "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 128},
        "vision_config": {"depth": 2, "num_heads": 2, "hidden_size": 32, "intermediate_size": 48,
                          "out_hidden_size": 64}})"},
};

class FamilyProgram : public testing::TestWithParam<Family> {};

TEST_P(FamilyProgram, RunsWithoutRacesOrLeaks) {
    for (const AttentionKernel attention : {AttentionKernel::eager, AttentionKernel::sdpa})
        for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full})
            for (const auto& [engine, stage] : {std::pair{EngineKind::single, 0U},
                                                {EngineKind::ddp, 0U},
                                                {EngineKind::fsdp1, 3U},
                                                {EngineKind::fsdp2, 3U}}) {
                LoweringOptions options = torch_lowering();
                options.attention = attention;
                ModelSpec model = read_model(nlohmann::json::parse(GetParam().config), "", options);
                Scenario scenario =
                    torch_scenario(engine, std::move(model), engine == EngineKind::single ? 1 : 4, stage);
                scenario.training.attention = attention;
                scenario.training.recompute = recompute;
                scenario.training.gradient_accumulation_steps = 2;
                const EngineOutput output = run_engine(scenario);
                for (const StepProgram& program : output.programs)
                    EXPECT_EQ(hazards(program), std::vector<std::string>{})
                        << to_string(engine) << " " << to_string(recompute);
            }
}

INSTANTIATE_TEST_SUITE_P(Families, FamilyProgram, testing::ValuesIn(families),
                         [](const auto& family) { return std::string(family.param.name); });

Scenario megatron_family(const char* name, const MegatronCase& wanted) {
    Scenario scenario = megatron_scenario("gpt", wanted);
    for (const Family& family : families)
        if (std::string_view(family.name) == name)
            scenario.model = read_model(nlohmann::json::parse(family.config), "", {});
    scenario.training.sequence_length = 64;
    return scenario;
}

TEST(FamilyPrograms, MegatronTrainsBertAndT5) {
    for (const char* name : {"bert", "t5", "bloom", "mpt"})
        for (const std::uint64_t tensor : {1U, 2U})
            for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
                const Scenario scenario = megatron_family(name, {.tensor = tensor,
                                                                 .micro_batches = 4,
                                                                 .recompute = recompute,
                                                                 .attention = AttentionKernel::eager,
                                                                 .dropout = true});
                const EngineOutput output = run_engine(scenario);
                for (const StepProgram& program : output.programs)
                    EXPECT_EQ(hazards(program), std::vector<std::string>{}) << name << " " << tensor;
            }
    EXPECT_EQ(run_engine(megatron_family("bert", {.pipeline = 2, .micro_batches = 4})).programs.size(), 2U);
}

/// hidden 64: dense, two norms' worth, a bias a token and two classes of a pooled token beside GPT's.
TEST(FamilyPrograms, MegatronBertHasHeadsOfItsOwn) {
    const EngineOutput output = run_engine(megatron_family("bert", {}));
    std::vector<std::string> names;
    for (const Parameter& parameter : output.rank_models.front().model.parameters)
        if (parameter.name.find("layers.") == std::string::npos) names.push_back(parameter.name);
    EXPECT_EQ(names, (std::vector<std::string>{
                         "embedding.word_embeddings.weight", "embedding.position_embeddings.weight",
                         "embedding.tokentype_embeddings.weight", "decoder.final_layernorm.weight",
                         "decoder.final_layernorm.bias", "lm_head.dense.weight", "lm_head.dense.bias",
                         "lm_head.layer_norm.weight", "lm_head.layer_norm.bias", "output_layer.weight",
                         "output_layer.bias", "binary_head.weight", "binary_head.bias", "pooler.dense.weight",
                         "pooler.dense.bias"}));
}

TEST(FamilyPrograms, RefuseWhatAnEngineCannotDivide) {
    EXPECT_THROW(run_engine(megatron_family("t5", {.pipeline = 2, .micro_batches = 4})), Error);
    EXPECT_THROW(run_engine(megatron_family("gemma2", {})), Error);
    EXPECT_THROW(run_engine(megatron_family("gptj", {})), Error);
    EXPECT_THROW(run_engine(megatron_family("mamba", {})), Error);
    for (const char* name : {"gpt_oss", "llama4_text", "olmo", "cohere", "phimoe", "qwen2_vl"})
        EXPECT_THROW(run_engine(megatron_family(name, {})), Error) << name;
}

}  // namespace
}  // namespace zeroplan
