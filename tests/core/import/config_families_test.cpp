#include "import/config_families.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "import/model_reader.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

ModelSpec read(const char* text) {
    return read_model(json::parse(text), "", {});
}

std::vector<std::string> first_names(const ModelSpec& model, std::size_t count) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < std::min(count, model.parameters.size()); ++i)
        names.push_back(model.parameters[i].name);
    return names;
}

struct Published {
    const char* config;
    std::uint64_t parameters;
};

// Counts of the published checkpoints, sizes of their config.json.
constexpr Published published[] = {
    {R"({"model_type": "opt", "hidden_size": 768, "num_hidden_layers": 12, "ffn_dim": 3072,
         "num_attention_heads": 12, "word_embed_proj_dim": 768, "vocab_size": 50272, "dropout": 0.1})",
     125'239'296},
    {R"({"model_type": "opt", "hidden_size": 1024, "num_hidden_layers": 24, "ffn_dim": 4096,
         "num_attention_heads": 16, "word_embed_proj_dim": 512, "vocab_size": 50272,
         "do_layer_norm_before": false})",
     331'196'416},
    {R"({"model_type": "gptj", "n_embd": 4096, "n_layer": 28, "n_head": 16, "vocab_size": 50400,
         "rotary_dim": 64, "n_positions": 2048})",
     6'050'882'784},
    {R"({"model_type": "gpt_neo", "hidden_size": 2048, "num_layers": 24, "num_heads": 16,
         "vocab_size": 50257, "max_position_embeddings": 2048})",
     1'315'575'808},
    {R"({"model_type": "phi", "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 32,
         "intermediate_size": 8192, "vocab_size": 51200})",
     1'418'270'720},
    {R"({"model_type": "gemma", "hidden_size": 2048, "num_hidden_layers": 18, "num_attention_heads": 8,
         "num_key_value_heads": 1, "intermediate_size": 16384, "vocab_size": 256000})",
     2'506'172'416},
    {R"({"model_type": "gemma", "hidden_act": "gelu", "hidden_activation": "gelu_pytorch_tanh"})",
     8'537'680'896},
    {R"({"model_type": "gemma2"})", 2'614'341'888},
    {R"({"model_type": "gemma3_text", "hidden_size": 1152, "num_hidden_layers": 26,
         "num_attention_heads": 4, "num_key_value_heads": 1, "intermediate_size": 6912,
         "vocab_size": 262144})",
     999'885'952},
    {R"({"model_type": "falcon", "hidden_size": 8192, "num_hidden_layers": 60, "num_attention_heads": 128,
         "num_kv_heads": 8, "new_decoder_architecture": true})",
     41'303'293'952},
    {R"({"model_type": "starcoder2", "hidden_size": 3072, "num_hidden_layers": 30})", 3'030'371'328},
    {R"({"model_type": "stablelm"})", 2'795'443'200},
    {R"({"model_type": "olmo2", "vocab_size": 100352})", 7'298'617'344},
    {R"({"model_type": "smollm3"})", 3'075'098'624},
};

TEST(ConfigFamilies, CountPublishedCheckpointsExactly) {
    for (const auto& [config, parameters] : published)
        EXPECT_EQ(read(config).parameter_count(), parameters) << config;
}

TEST(ConfigFamilies, NameWhatWasCounted) {
    EXPECT_EQ(read(R"({"model_type": "falcon"})").architecture, "FalconForCausalLM");
    EXPECT_EQ(read(R"({"model_type": "mpt"})").architecture, "MptForCausalLM");
    // Learned positions are llm-foundry's own.
    EXPECT_EQ(read(R"({"model_type": "mpt", "learned_pos_emb": true, "attn_config": {"alibi": false}})")
                  .architecture,
              "MPTForCausalLM");
}

TEST(ConfigFamilies, RegisterParametersAsTheirClassesDo) {
    EXPECT_EQ(first_names(read(R"({"model_type": "opt", "word_embed_proj_dim": 512})"), 7),
              (std::vector<std::string>{
                  "model.decoder.embed_tokens.weight", "model.decoder.embed_positions.weight",
                  "model.decoder.project_out.weight", "model.decoder.project_in.weight",
                  "model.decoder.final_layer_norm.weight", "model.decoder.final_layer_norm.bias",
                  "model.decoder.layers.0.self_attn.k_proj.weight"}));
    EXPECT_EQ(
        first_names(read(R"({"model_type": "falcon"})"), 7),
        (std::vector<std::string>{
            "transformer.word_embeddings.weight", "transformer.h.0.self_attention.query_key_value.weight",
            "transformer.h.0.self_attention.dense.weight", "transformer.h.0.mlp.dense_h_to_4h.weight",
            "transformer.h.0.mlp.dense_4h_to_h.weight", "transformer.h.0.input_layernorm.weight",
            "transformer.h.0.input_layernorm.bias"}));
    EXPECT_EQ(first_names(read(R"({"model_type": "mpt"})"), 4),
              (std::vector<std::string>{"transformer.wte.weight", "transformer.blocks.0.norm_1.weight",
                                        "transformer.blocks.0.attn.Wqkv.weight",
                                        "transformer.blocks.0.attn.out_proj.weight"}));
}

/// A tied weight is the token table wherever moved parameters have put it.
TEST(ConfigFamilies, TieTheOutputLayerToTheTokenTable) {
    const ModelSpec model = read(R"({"model_type": "opt"})");
    EXPECT_EQ(model.parameters.back().name, "lm_head.weight");
    EXPECT_EQ(model.parameters.back().shared_with, 0U);
    const Block& head = model.blocks.back();
    EXPECT_EQ(model.parameters[head.parameters[0]].name, "model.decoder.final_layer_norm.weight");
}

TEST(ConfigFamilies, ReadMptAsLlmFoundryWritesIt) {
    // 7B of the training benchmarks: biases and learned positions.
    const ModelSpec model =
        read(R"({"model_type": "mpt", "d_model": 4096, "n_layers": 32, "n_heads": 32, "expansion_ratio": 4,
                 "max_seq_len": 2048, "vocab_size": 50368, "no_bias": false, "learned_pos_emb": true,
                 "attn_config": {"attn_impl": "flash", "alibi": false}})");
    const std::uint64_t h = 4096, layer = 12 * h * h + 13 * h;
    EXPECT_EQ(model.parameter_count(), 50368 * h + 2048 * h + 32 * layer + 2 * h);
    EXPECT_EQ(model.max_sequence_length, 2048U);
}

TEST(ConfigFamilies, LeaveEveryFourthLayerOfSmolLm3Unrotated) {
    const ModelSpec usual = read(R"({"model_type": "smollm3", "num_hidden_layers": 9})");
    EXPECT_EQ(usual.decoder->layers_without_rope, (std::vector<std::uint64_t>{3, 7}));
    const ModelSpec listed =
        read(R"({"model_type": "smollm3", "num_hidden_layers": 3, "no_rope_layers": [0, 1, 1]})");
    EXPECT_EQ(listed.decoder->layers_without_rope, std::vector<std::uint64_t>{0});
}

bool has_operator(const ModelSpec& model, std::string_view name) {
    return std::any_of(model.block_kinds.begin(), model.block_kinds.end(), [&](const BlockKind& kind) {
        return std::any_of(kind.operators.begin(), kind.operators.end(),
                           [&](const Operator& op) { return op.name == name; });
    });
}

TEST(ConfigFamilies, ScaleWhatGraniteScales) {
    const ModelSpec model = read(R"({"model_type": "granite", "logits_scaling": 8.0})");
    EXPECT_TRUE(model.decoder->scales_logits);
    EXPECT_TRUE(has_operator(model, "embedding.scale"));
}

TEST(ConfigFamilies, TemperLlama4sQueriesUnlessToldOtherwise) {
    EXPECT_TRUE(has_operator(read(R"({"model_type": "llama4_text"})"), "attention.query.scale"));
    EXPECT_FALSE(has_operator(read(R"({"model_type": "llama4_text", "attn_temperature_tuning": false})"),
                              "attention.query.scale"));
}

TEST(ConfigFamilies, RefuseWidthsThatAreNone) {
    EXPECT_THROW(read(R"({"model_type": "mpt", "d_model": 100, "n_heads": 4, "expansion_ratio": 1.333})"),
                 Error);
    EXPECT_THROW(read(R"({"model_type": "falcon", "num_attention_heads": 64, "hidden_size": 4096,
                          "num_kv_heads": 7, "new_decoder_architecture": true})"),
                 Error);
}

}  // namespace
}  // namespace zeroplan
