#include "import/config_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace zeroplan {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

ReadConfig read(const json& config) {
    return read_config(ConfigObject(ObjectReader(config, {"config.json", ""})), "model");
}

Error error_of(const json& config) {
    try {
        read(config);
    } catch (const Error& error) {
        return error;
    }
    ADD_FAILURE() << "accepted: " << config;
    return Error(ErrorCode::invalid_input, "");
}

json generic(json more = json::object()) {
    json config = {{"model_type", "gpt"},       {"hidden_size", 1024}, {"num_hidden_layers", 4},
                   {"num_attention_heads", 16}, {"vocab_size", 50257}, {"max_position_embeddings", 2048}};
    config.update(more);
    return config;
}

TEST(ReadConfig, TakesEachFamilysOwnDefaults) {
    const DecoderConfig llama = read({{"model_type", "llama"}}).decoder;
    EXPECT_EQ(llama.intermediate_size, 11008U);
    EXPECT_EQ(llama.num_key_value_heads, 32U);
    EXPECT_EQ(llama.max_position_embeddings, 2048U);
    EXPECT_EQ(llama.head_dim, 128U);
    EXPECT_FALSE(llama.tie_word_embeddings);
    const DecoderConfig mistral = read({{"model_type", "mistral"}}).decoder;
    EXPECT_EQ(mistral.num_key_value_heads, 8U);
    EXPECT_EQ(mistral.intermediate_size, 14336U);
    const DecoderConfig qwen2 = read({{"model_type", "qwen2"}}).decoder;
    EXPECT_TRUE(qwen2.attention_bias);
    EXPECT_FALSE(qwen2.attention_output_bias);
    EXPECT_EQ(qwen2.vocab_size, 151936U);
    const DecoderConfig qwen3 = read({{"model_type", "qwen3"}, {"hidden_size", 1024}}).decoder;
    EXPECT_EQ(qwen3.head_dim, 128U);
    EXPECT_TRUE(qwen3.query_key_norm);
    const ReadConfig gpt2 = read({{"model_type", "gpt2"}});
    EXPECT_EQ(gpt2.decoder.family, "gpt2");
    EXPECT_TRUE(gpt2.decoder.tie_word_embeddings);
    EXPECT_EQ(gpt2.decoder.intermediate_size, 3072U);
    EXPECT_FALSE(gpt2.dropout);
}

TEST(ReadConfig, TakesNullForAbsent) {
    const DecoderConfig decoder = read({{"model_type", "llama"},
                                        {"head_dim", nullptr},
                                        {"num_key_value_heads", nullptr},
                                        {"rope_scaling", nullptr}})
                                      .decoder;
    EXPECT_EQ(decoder.head_dim, 128U);
    EXPECT_EQ(decoder.num_key_value_heads, 32U);
}

TEST(ReadConfig, IgnoresKeysThatChangeNoShape) {
    const json config = {{"model_type", "llama"}, {"rope_scaling", {{"factor", 8.0}}}, {"use_cache", true}};
    EXPECT_EQ(read(config).decoder.hidden_size, 4096U);
}

TEST(ReadConfig, HonoursOurKeys) {
    const ReadConfig config = read(generic({{"mlp", "squared_relu"},
                                            {"position_embedding", "rope"},
                                            {"normalization", "rmsnorm"},
                                            {"linear_bias", false},
                                            {"dropout", true},
                                            {"tie_word_embeddings", false},
                                            {"vocab_size_padded", 50304}}));
    EXPECT_EQ(config.decoder.mlp, "squared_relu");
    EXPECT_EQ(config.decoder.position_embedding, "rope");
    EXPECT_EQ(config.decoder.normalization, "rmsnorm");
    EXPECT_FALSE(config.decoder.attention_bias || config.decoder.attention_output_bias ||
                 config.decoder.mlp_bias);
    EXPECT_FALSE(config.decoder.tie_word_embeddings);
    EXPECT_TRUE(config.dropout);
    EXPECT_EQ(config.decoder.vocab_size, 50304U);
    EXPECT_EQ(config.decoder.intermediate_size, 4096U);
    EXPECT_TRUE(read({{"model_type", "llama"}, {"linear_bias", true}}).decoder.mlp_bias);
}

TEST(ReadConfig, ReadsTheActivation) {
    EXPECT_EQ(read({{"model_type", "llama"}, {"hidden_act", "gelu_pytorch_tanh"}}).decoder.mlp, "geglu");
    EXPECT_EQ(read({{"model_type", "gpt2"}, {"activation_function", "relu"}}).decoder.mlp, "relu");
    EXPECT_EQ(read(generic({{"hidden_act", "relu2"}})).decoder.mlp, "squared_relu");
    EXPECT_EQ(error_of({{"model_type", "llama"}, {"hidden_act", "relu6"}}).code(), ErrorCode::not_supported);
    EXPECT_THAT(error_of({{"model_type", "llama"}, {"mlp", "swigl"}}).hint(), HasSubstr("swiglu"));
}

TEST(ReadConfig, NamesBothSizesThatDoNotDivide) {
    const Error hidden = error_of({{"model_type", "llama"}, {"hidden_size", 4097}});
    EXPECT_EQ(hidden.place().pointer, "/hidden_size");
    EXPECT_THAT(hidden.message(), AllOf(HasSubstr("4097"), HasSubstr("32")));
    EXPECT_THAT(hidden.hint(), AllOf(HasSubstr("4096"), HasSubstr("4128")));
    const Error heads = error_of({{"model_type", "llama"}, {"num_key_value_heads", 5}});
    EXPECT_EQ(heads.place().pointer, "/num_key_value_heads");
    EXPECT_THAT(heads.message(), AllOf(HasSubstr("32"), HasSubstr("5")));
    EXPECT_NO_THROW(read({{"model_type", "llama"}, {"hidden_size", 4097}, {"head_dim", 64}}));
    EXPECT_THAT(error_of(generic({{"vocab_size_padded", 50000}})).message(),
                AllOf(HasSubstr("50000"), HasSubstr("50257")));
}

TEST(ReadConfig, RefusesSizesThatCannotBe) {
    for (const char* key : {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                            "vocab_size", "num_key_value_heads", "head_dim", "max_position_embeddings"})
        for (const json& value : {json(0), json(-1), json(1.5), json(1e300), json("4096"), json(true)}) {
            const Error error = error_of({{"model_type", "llama"}, {key, value}});
            EXPECT_EQ(error.place(), (ErrorPlace{"config.json", std::string("/") + key})) << value;
            EXPECT_EQ(error.code(), ErrorCode::invalid_input);
        }
}

TEST(ReadConfig, CatchesMisspeltShapes) {
    EXPECT_EQ(error_of({{"model_type", "llama"}, {"hiden_size", 8}}).hint(), "did you mean \"hidden_size\"?");
    EXPECT_EQ(error_of({{"model_type", "llama"}, {"num_hiden_layer", 8}}).hint(),
              "did you mean \"num_hidden_layers\"?");
    EXPECT_THAT(error_of({{"model_type", "gpt2"}, {"n_embd", 8}, {"hidden_size", 16}}).message(),
                AllOf(HasSubstr("16"), HasSubstr("8")));
}

TEST(ReadConfig, NamesTheNearestModelTypeAndTheWayOut) {
    const Error unknown = error_of({{"model_type", "lama"}});
    EXPECT_THAT(unknown.message(), HasSubstr("unknown model_type \"lama\""));
    EXPECT_THAT(unknown.hint(), AllOf(HasSubstr("\"llama\""), HasSubstr(".safetensors")));
    EXPECT_THAT(error_of({{"model_type", "minicpm"}}).message(), HasSubstr("\"minicpm\""));
    EXPECT_EQ(error_of({{"architectures", {"XGLMForCausalLM"}}}).code(), ErrorCode::not_supported);
    error_of({{"hidden_size", 64}});
}

TEST(ReadConfig, RefusesWhatWouldBeAnotherModel) {
    EXPECT_EQ(error_of({{"model_type", "llama"}, {"num_local_experts", 8}}).code(), ErrorCode::not_supported);
    EXPECT_EQ(error_of({{"model_type", "gpt2"}, {"add_cross_attention", true}}).code(),
              ErrorCode::not_supported);
    error_of({{"model_type", "gpt2"}, {"decoder_sequence_length", 128}});
}

TEST(ReadConfig, ReadsWhichLayersHaveExperts) {
    const DecoderConfig mixtral = read({{"model_type", "mixtral"}}).decoder;
    EXPECT_EQ(mixtral.experts->count, 8U);
    EXPECT_EQ(mixtral.experts->intermediate_size, 14336U);
    const DecoderConfig qwen = read({{"model_type", "qwen2_moe"}, {"decoder_sparse_step", 2}}).decoder;
    EXPECT_FALSE(qwen.experts->has_experts(0));
    EXPECT_TRUE(qwen.experts->has_experts(1));
    EXPECT_TRUE(qwen.experts->shared_gate);
    const DecoderConfig deepseek =
        read({{"model_type", "deepseek_v2"}, {"first_k_dense_replace", 1}, {"q_lora_rank", nullptr}}).decoder;
    EXPECT_FALSE(deepseek.experts->has_experts(0));
    EXPECT_TRUE(deepseek.experts->has_experts(1));
    EXPECT_EQ(deepseek.experts->shared_intermediate_size, 2 * 1407U);
    EXPECT_EQ(deepseek.latent_attention->query_rank, 0U);
    EXPECT_EQ(deepseek.latent_attention->key_value_rank, 512U);
    EXPECT_FALSE(read({{"model_type", "llama"}}).decoder.experts);
}

TEST(ReadConfig, RefusesExpertsThatCannotBe) {
    EXPECT_THAT(error_of({{"model_type", "mixtral"}, {"num_experts_per_tok", 9}}).message(),
                AllOf(HasSubstr("9"), HasSubstr("8")));
    EXPECT_EQ(error_of({{"model_type", "qwen3_moe"}, {"mlp_only_layers", {3}}}).code(),
              ErrorCode::not_supported);
    EXPECT_EQ(error_of({{"model_type", "deepseek_v2"}, {"moe_layer_freq", 2}}).code(),
              ErrorCode::not_supported);
}

TEST(ReadConfig, NotesWhatItAssumed) {
    const ReadConfig config = read({{"model_type", "llama"},
                                    {"architectures", {"LlamaForSequenceClassification"}},
                                    {"quantization_config", {{"quant_method", "fp8"}}}});
    EXPECT_EQ(config.notes.size(), 2U);
    EXPECT_THAT(config.notes[0], HasSubstr("LlamaForSequenceClassification"));
}

TEST(ReadConfig, NeedsTheSizesOfAGenericModel) {
    for (const char* key : {"hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size",
                            "max_position_embeddings"}) {
        json config = generic();
        config.erase(key);
        EXPECT_THAT(error_of(config).message(), HasSubstr(key));
    }
    json rope = generic({{"position_embedding", "rope"}});
    rope.erase("max_position_embeddings");
    EXPECT_EQ(read(rope).decoder.max_position_embeddings, 2048U);
}

}  // namespace
}  // namespace zeroplan
