#include "import/config_other.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/json/error_of.hpp"
#include "import/model_reader.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;
using testing::HasSubstr;

ModelSpec read(const std::string& text, const LoweringOptions& options = {}) {
    return read_model(json::parse(text), "", options);
}

struct Published {
    const char* config;
    std::uint64_t parameters;
};

// Counts of the published checkpoints, or of their classes as transformers builds them.
constexpr Published published[] = {
    {R"({"model_type": "bert", "architectures": ["BertModel"]})", 109'482'240},
    {R"({"model_type": "bert", "architectures": ["BertForMaskedLM"]})", 109'514'298},
    {R"({"model_type": "bert", "architectures": ["BertForPreTraining"]})", 110'106'428},
    {R"({"model_type": "bert"})", 109'483'778},
    {R"({"model_type": "bert", "architectures": ["BertForTokenClassification"], "num_labels": 9})",
     108'898'569},
    {R"({"model_type": "roberta", "architectures": ["RobertaForMaskedLM"], "max_position_embeddings": 514,
         "type_vocab_size": 1})",
     124'697'433},
    // Without heads: 124,055,040, and a dense layer and an output for each class.
    {R"({"model_type": "roberta", "max_position_embeddings": 514, "type_vocab_size": 1, "num_labels": 3})",
     124'055'040 + 768 * 769 + 3 * 769},
    {R"({"model_type": "distilbert", "architectures": ["DistilBertForMaskedLM"], "dim": 768, "n_layers": 6,
         "n_heads": 12, "hidden_dim": 3072})",
     66'985'530},
    {R"({"model_type": "distilbert", "architectures": ["DistilBertModel"]})", 66'362'880},
    {R"({"model_type": "distilbert", "num_labels": 2})", 66'955'010},
    // mt5-small: six heads of 64 in 512, an output layer of its own.
    {R"({"model_type": "mt5", "d_model": 512, "d_kv": 64, "d_ff": 1024, "num_layers": 8, "num_heads": 6,
         "feed_forward_proj": "gated-gelu", "tie_word_embeddings": false, "vocab_size": 250112})",
     300'176'768},
    // flan-t5-base: gated MLP, output layer of its own.
    {R"({"model_type": "t5", "d_model": 768, "d_kv": 64, "d_ff": 2048, "num_layers": 12, "num_heads": 12,
         "feed_forward_proj": "gated-gelu", "tie_word_embeddings": false})",
     247'577'856},
    {R"({"model_type": "vit", "num_labels": 1000})", 86'567'656},
    // dinov2-giant without its classifier has 1,136,480,768.
    {R"({"model_type": "dinov2", "hidden_size": 1536, "num_hidden_layers": 40, "num_attention_heads": 24,
         "use_swiglu_ffn": true, "image_size": 518, "patch_size": 14, "num_labels": 2})",
     1'136'480'768 + 2 * 2 * 1536 + 2},
    {R"({"model_type": "mamba", "hidden_size": 768, "num_hidden_layers": 24})", 129'135'360},
    {R"({"model_type": "mamba", "hidden_size": 2560, "num_hidden_layers": 64})", 2'768'345'600},
};

TEST(OtherFamilies, CountPublishedCheckpointsExactly) {
    for (const auto& [config, parameters] : published)
        EXPECT_EQ(read(config).parameter_count(), parameters) << config;
}

TEST(OtherFamilies, LeaveOutThePositionsOfPadding) {
    EXPECT_EQ(read(R"({"model_type": "roberta", "max_position_embeddings": 514})").max_sequence_length, 512U);
    EXPECT_EQ(read(R"({"model_type": "bert"})").max_sequence_length, 512U);
}

TEST(OtherFamilies, NameTheNearestThatIsBuilt) {
    const Error error = error_of([] { (void)read(R"({"model_type": "granitemoe"})"); });
    EXPECT_THAT(error.hint(), HasSubstr("the nearest that is built is \"mixtral\""));
    EXPECT_THAT(error.hint(), HasSubstr(".safetensors"));
}

TEST(OtherFamilies, NameTheClassThatWasCounted) {
    const ModelSpec model = read(R"({"model_type": "bert"})");
    EXPECT_EQ(model.architecture, "BertForSequenceClassification");
    ASSERT_FALSE(model.notes.empty());
    EXPECT_THAT(model.notes.front(), HasSubstr("BertForSequenceClassification"));
    EXPECT_EQ(read(R"({"architectures": ["BertForMaskedLM"]})").architecture, "BertForMaskedLM");
}

TEST(OtherFamilies, RefuseClassesThatAreNotBuilt) {
    try {
        read(R"({"model_type": "bert", "architectures": ["BertForMultipleChoice"]})");
        FAIL() << "accepted";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::not_supported);
        EXPECT_THAT(error.hint(), HasSubstr("BertForMaskedLM"));
        EXPECT_EQ(error.place().pointer, "/architectures");
    }
}

TEST(OtherFamilies, RefuseSizesBeyondAnyModel) {
    for (const char* config :
         {R"({"model_type": "t5", "num_layers": 1000000000})", R"({"model_type": "mamba", "n_layer": 20000})",
          R"({"model_type": "vit", "image_size": 1000000})", R"({"model_type": "vit", "patch_size": 1000})",
          R"({"model_type": "bert", "hidden_size": 100})"})
        EXPECT_THROW(read(config), Error) << config;
}

TEST(OtherFamilies, SizeADecoderByItsOwnLength) {
    const std::string t5 = R"({"model_type": "t5", "num_layers": 1)";
    const ModelSpec model = read(t5 + R"(, "decoder_sequence_length": 100})");
    const BlockKind& layer = model.block_kinds[model.blocks[4].kind];
    ASSERT_TRUE(layer.context_tensor.has_value());
    EXPECT_EQ(*model.blocks[4].context_from, 2U);
    // The layer's own input has 100 tokens of 512; the encoder's output is as long as the sequence.
    EXPECT_EQ(elements(layer.tensors[0].extent, 2, 7), 2U * 100 * 512);
    EXPECT_EQ(elements(layer.tensors[*layer.context_tensor].extent, 2, 7), 2U * 7 * 512);
}

/// Scores of the decoder's tokens against the encoder's, and against their own.
TEST(OtherFamilies, ScoreADecodersTokensAgainstTheEncoders) {
    const ModelSpec model =
        read(R"({"model_type": "t5", "num_layers": 2, "num_heads": 8, "decoder_sequence_length": 100})",
             {.attention = AttentionKernel::eager});
    const BlockKind& layer = model.block_kinds[model.blocks[6].kind];
    std::vector<std::uint64_t> scores;
    for (const Operator& op : layer.operators)
        if (op.kind == OperatorKind::attention_scores)
            scores.push_back(elements(layer.tensors[op.outputs[0]].extent, 1, 7));
    EXPECT_EQ(scores, (std::vector<std::uint64_t>{8 * 100 * 100, 8 * 100 * 7}));
}

TEST(OtherFamilies, HoldRelativePositionsInTheFirstLayerOnly) {
    const ModelSpec model = read(R"({"model_type": "t5"})");
    std::vector<std::string> tables;
    for (const Parameter& parameter : model.parameters)
        if (parameter.name.find("relative") != std::string::npos) tables.push_back(parameter.name);
    EXPECT_EQ(tables, (std::vector<std::string>{
                          "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
                          "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"}));
    EXPECT_EQ(model.parameters.front().name, "shared.weight");
    EXPECT_EQ(model.parameters.back().shared_with, 0U);
}

TEST(OtherFamilies, ReadImagesIntoALanguageModelsTokens) {
    const ModelSpec model = read(R"({"model_type": "llava",
        "text_config": {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1,
                        "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100},
        "vision_config": {"model_type": "clip_vision_model", "hidden_size": 32, "intermediate_size": 64,
                          "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 28,
                          "patch_size": 14}})");
    // Patch embedding, layer, last norm, projector, embedding of the text.
    const Block& embedding = model.blocks[4];
    const BlockKind& kind = model.block_kinds[embedding.kind];
    EXPECT_TRUE(kind.starts_from_batch);
    EXPECT_EQ(*embedding.context_from, 3U);
    EXPECT_EQ(elements(kind.tensors[*kind.context_tensor].extent, 3, 50), 3U * 4 * 64);
    // Five tokens an image: four patches and the class token.
    EXPECT_EQ(elements(model.block_kinds[model.blocks[1].kind].tensors[0].extent, 3, 50), 3U * 5 * 32);
    EXPECT_EQ(model.parameters[embedding.parameters[0]].name, "language_model.model.embed_tokens.weight");
}

TEST(OtherFamilies, MergePatchesIntoTokens) {
    const char* config = R"({"model_type": "qwen2_vl", "hidden_size": 64, "num_hidden_layers": 1,
        "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 100,
        "image_size": 56,
        "vision_config": {"depth": 1, "num_heads": 2, "embed_dim": 32, "hidden_size": 64}})";
    const ModelSpec model = read(config);
    // Sixteen patches of 3 · 2 · 14 · 14 numbers make four tokens. Patch embedding, layer, merger, text.
    const auto input = [&](std::size_t block) {
        return elements(model.block_kinds[model.blocks[block].kind].tensors[0].extent, 3, 50);
    };
    EXPECT_EQ(input(0), 3U * 16 * 3 * 2 * 14 * 14);
    EXPECT_EQ(input(1), 3U * 16 * 32);
    EXPECT_EQ(input(2), 3U * 16 * 32);
    const BlockKind& embedding = model.block_kinds[model.blocks[3].kind];
    EXPECT_EQ(elements(embedding.tensors[*embedding.context_tensor].extent, 3, 50), 3U * 4 * 64);
    // One product a token: four patches side by side.
    const BlockKind& merger = model.block_kinds[model.blocks[2].kind];
    EXPECT_EQ(operations(merger.operators[1].forward_flops, 3, 50), 3.0 * 4 * 2 * 128 * 128);
}

TEST(OtherFamilies, RefuseTowersThatDoNotMeetTheirText) {
    const Error width = error_of([] {
        (void)read(R"({"model_type": "qwen2_vl", "hidden_size": 64, "num_attention_heads": 4,
                       "num_key_value_heads": 2, "vision_config": {"embed_dim": 32, "num_heads": 2}})");
    });
    EXPECT_THAT(width.message(), testing::AllOf(HasSubstr("3584"), HasSubstr("64")));
    const Error image = error_of([] {
        (void)read(
            R"({"model_type": "qwen2_5_vl", "image_size": 100, "vision_config": {"hidden_size": 1280}})");
    });
    EXPECT_THAT(image.message(), HasSubstr("100 pixels"));
}

TEST(OtherFamilies, ClassifyOneTokenASequence) {
    const ModelSpec model = read(R"({"model_type": "bert"})");
    const BlockKind& head = model.block_kinds[model.blocks.back().kind];
    EXPECT_EQ(elements(head.tensors[*head.target_tensor].extent, 4, 128), 4U);
    EXPECT_EQ(elements(head.tensors[0].extent, 4, 128), 4U * 128 * 768);
}

}  // namespace
}  // namespace zeroplan
