#include "import/safetensors.hpp"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "import/model_reader.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

/// A folder that is gone after the test.
class Safetensors : public testing::Test {
protected:
    Safetensors()
        : folder_(fs::path(testing::TempDir()) /
                  testing::UnitTest::GetInstance()->current_test_info()->name()) {
        fs::remove_all(folder_);
        fs::create_directories(folder_);
    }
    ~Safetensors() override { fs::remove_all(folder_); }

    fs::path write(const std::string& name, const std::string& header, std::uint64_t data_bytes) const {
        const fs::path path = folder_ / name;
        std::ofstream file(path, std::ios::binary);
        std::uint64_t length = header.size();
        for (int i = 0; i < 8; ++i, length >>= 8) file.put(static_cast<char>(length & 0xff));
        file << header;
        file.close();
        fs::resize_file(path, fs::file_size(path) + data_bytes);
        return path;
    }

    /// Tensors in bf16, one after the other; a hole in the file stands for the data.
    fs::path write(const std::string& name,
                   const std::map<std::string, std::vector<std::uint64_t>>& shapes) const {
        json header = {{"__metadata__", {{"format", "pt"}}}};
        std::uint64_t offset = 0;
        for (const auto& [tensor, shape] : shapes) {
            std::uint64_t bytes = 2;
            for (const std::uint64_t size : shape) bytes *= size;
            header[tensor] = {
                {"dtype", "BF16"}, {"shape", shape}, {"data_offsets", {offset, offset + bytes}}};
            offset += bytes;
        }
        return write(name, header.dump(), offset);
    }

    void write_text(const std::string& name, const std::string& text) const {
        std::ofstream(folder_ / name) << text;
    }

    ModelSpec read(const std::string& name) const {
        return read_model({{"file", name}}, folder_.string(), {}, {"s.json", "/model"});
    }

    Error error_of(const std::string& name) const {
        try {
            read(name);
        } catch (const Error& error) {
            return error;
        }
        ADD_FAILURE() << "accepted: " << name;
        return Error(ErrorCode::invalid_input, "");
    }

    fs::path folder_;
};

std::map<std::string, std::vector<std::uint64_t>> shapes_of(const ModelSpec& model) {
    std::map<std::string, std::vector<std::uint64_t>> shapes;
    for (const Parameter& parameter : model.parameters)
        if (!parameter.shared_with) shapes[parameter.name] = parameter.shape;
    return shapes;
}

const json small_llama = {{"model_type", "llama"},  {"hidden_size", 256},          {"intermediate_size", 512},
                          {"num_hidden_layers", 3}, {"num_attention_heads", 4},    {"num_key_value_heads", 2},
                          {"vocab_size", 1000},     {"tie_word_embeddings", false}};

TEST_F(Safetensors, InfersLlamaFromNamesAndShapes) {
    const ModelSpec expected = read_model(small_llama, "", {});
    write("small.safetensors", shapes_of(expected));
    const ModelSpec model = read("small.safetensors");
    EXPECT_EQ(model.parameters, expected.parameters);
    EXPECT_EQ(model.heads, 4U);
    EXPECT_EQ(model.kv_heads, 2U);
    EXPECT_THAT(model.notes, testing::Contains(HasSubstr("64 is assumed")));
    EXPECT_EQ(model.name, "small");
}

TEST_F(Safetensors, InfersQwenBiasesNormsAndTiedEmbeddings) {
    json qwen2 = small_llama, qwen3 = small_llama;
    qwen2.update({{"model_type", "qwen2"}, {"tie_word_embeddings", true}});
    qwen3.update({{"model_type", "qwen3"}, {"head_dim", 32}});
    write("qwen2.safetensors", shapes_of(read_model(qwen2, "", {})));
    write("qwen3.safetensors", shapes_of(read_model(qwen3, "", {})));
    EXPECT_EQ(read("qwen2.safetensors").parameters, read_model(qwen2, "", {}).parameters);
    EXPECT_EQ(read("qwen3.safetensors").parameters, read_model(qwen3, "", {}).parameters);
    EXPECT_EQ(read("qwen3.safetensors").architecture, "Qwen3ForCausalLM");
}

TEST_F(Safetensors, InfersGpt2WithoutItsPrefixAndWithItsMasks) {
    const ModelSpec expected = read_model({{"preset", "gpt2"}, {"n_layer", 2}}, "", {});
    std::map<std::string, std::vector<std::uint64_t>> shapes;
    for (const auto& [name, shape] : shapes_of(expected))
        shapes[name.substr(std::string("transformer.").size())] = shape;
    shapes["h.0.attn.bias"] = {1, 1, 1024, 1024};
    write("gpt2.safetensors", shapes);
    EXPECT_EQ(read("gpt2.safetensors").parameters, expected.parameters);
    EXPECT_EQ(read("gpt2.safetensors").heads, 12U);
}

/// Models of two or three small layers, one a family and its variants.
std::vector<json> small_models() {
    const auto with = [](json config, const json& more) {
        config.update(more);
        return config;
    };
    const json sizes = {{"hidden_size", 256},       {"intermediate_size", 512},   {"num_hidden_layers", 2},
                        {"num_attention_heads", 4}, {"num_key_value_heads", 2},   {"vocab_size", 1000},
                        {"head_dim", 64},           {"tie_word_embeddings", true}};
    const json experts = {{"num_experts", 4},
                          {"num_experts_per_tok", 2},
                          {"num_local_experts", 4},
                          {"moe_intermediate_size", 96},
                          {"shared_expert_intermediate_size", 160}};
    std::vector<json> models;
    for (const char* type : {"gemma2", "gemma3_text", "olmo", "olmo2", "glm4", "phi3", "starcoder2"})
        models.push_back(with(sizes, {{"model_type", type}}));
    for (const char* type : {"mixtral", "qwen2_moe", "qwen3_moe", "gpt_oss", "olmoe"})
        models.push_back(with(with(sizes, experts), {{"model_type", type}}));
    json equal = sizes;
    for (const char* key : {"num_key_value_heads", "head_dim"}) equal.erase(key);
    for (const char* type : {"phi", "gpt_neox", "bert", "gpt_neo", "gptj"})
        models.push_back(with(equal, {{"model_type", type}, {"tie_word_embeddings", type[0] == 'b'}}));
    models.push_back(with(equal, {{"model_type", "gpt_neo"}}));
    equal.erase("intermediate_size");
    models.push_back(with(equal, {{"model_type", "bloom"}}));
    models.push_back(with(equal, {{"model_type", "falcon"}}));
    models.push_back(with(equal, {{"model_type", "falcon"},
                                  {"multi_query", false},
                                  {"bias", true},
                                  {"parallel_attn", false},
                                  {"alibi", true}}));
    models.push_back(
        with(equal, {{"model_type", "falcon"}, {"new_decoder_architecture", true}, {"num_kv_heads", 2}}));
    for (const bool before : {true, false})
        models.push_back(with(equal, {{"model_type", "opt"},
                                      {"ffn_dim", 512},
                                      {"do_layer_norm_before", before},
                                      {"word_embed_proj_dim", before ? 256 : 128}}));
    models.push_back(
        {{"model_type", "mpt"}, {"d_model", 256}, {"n_heads", 4}, {"n_layers", 2}, {"vocab_size", 1000}});
    for (const char* architecture : {"BertModel", "BertForMaskedLM", "BertForPreTraining",
                                     "BertForTokenClassification", "BertForSequenceClassification"})
        models.push_back(with(
            equal, {{"model_type", "bert"}, {"intermediate_size", 512}, {"architectures", {architecture}}}));
    for (const char* projection : {"relu", "gated-gelu"})
        models.push_back({{"model_type", "t5"},
                          {"d_model", 256},
                          {"d_ff", 512},
                          {"num_layers", 2},
                          {"num_decoder_layers", 3},
                          {"num_heads", 4},
                          {"d_kv", 32},
                          {"vocab_size", 1000},
                          {"feed_forward_proj", projection},
                          {"tie_word_embeddings", std::string(projection) == "relu"}});
    models.push_back(
        {{"model_type", "mamba"}, {"hidden_size", 256}, {"num_hidden_layers", 2}, {"vocab_size", 1000}});
    return models;
}

/// Names and shapes of a checkpoint say what the model is; every parameter comes out as it was.
TEST_F(Safetensors, RecognisesFamiliesByTheirTensors) {
    for (const json& config : small_models()) {
        const ModelSpec expected = read_model(config, "", {});
        write("model.safetensors", shapes_of(expected));
        try {
            const ModelSpec model = read("model.safetensors");
            EXPECT_EQ(model.parameters, expected.parameters) << config;
            EXPECT_EQ(model.batch, expected.batch) << config;
        } catch (const Error& error) {
            ADD_FAILURE() << config << ": " << error.message();
        }
    }
}

/// As Mixtral's and Qwen's checkpoints are saved: an expert's weights by themselves.
std::map<std::string, std::vector<std::uint64_t>> unfused(
    const std::map<std::string, std::vector<std::uint64_t>>& shapes, bool mixtral) {
    std::map<std::string, std::vector<std::uint64_t>> saved;
    for (const auto& [name, shape] : shapes) {
        const auto experts = name.find("mlp.experts."), router = name.find("mlp.gate.weight");
        const auto base = name.substr(0, std::min(experts, router));
        const std::string module = mixtral ? "block_sparse_moe." : "mlp.";
        if (router != std::string::npos) saved[base + module + "gate.weight"] = shape;
        if (experts == std::string::npos && router == std::string::npos) saved[name] = shape;
        if (experts == std::string::npos) continue;
        for (std::uint64_t e = 0; e < shape[0]; ++e) {
            const std::string expert = base + module + "experts." + std::to_string(e) + ".";
            if (name.ends_with("down_proj")) {
                saved[expert + (mixtral ? "w2" : "down_proj") + ".weight"] = {shape[1], shape[2]};
                continue;
            }
            for (const char* half : {mixtral ? "w1" : "gate_proj", mixtral ? "w3" : "up_proj"})
                saved[expert + half + ".weight"] = {shape[1] / 2, shape[2]};
        }
    }
    return saved;
}

TEST_F(Safetensors, TakesExpertsThatAreSavedOneByOne) {
    for (const json& config : small_models()) {
        const std::string type = config.at("model_type");
        if (type != "mixtral" && !type.ends_with("_moe")) continue;
        const ModelSpec expected = read_model(config, "", {});
        write("model.safetensors", unfused(shapes_of(expected), type == "mixtral"));
        EXPECT_EQ(read("model.safetensors").parameters, expected.parameters) << config;
        write_text("config.json", config.dump());
        EXPECT_EQ(read(".").parameters, expected.parameters) << config;
        fs::remove(folder_ / "config.json");
    }
}

/// As gpt-oss is published: blocks of 32 four-bit numbers, and a scale each.
TEST_F(Safetensors, UnpacksExpertsInBlocks) {
    const json config = {{"model_type", "gpt_oss"}, {"hidden_size", 64},        {"intermediate_size", 96},
                         {"num_hidden_layers", 1},  {"num_attention_heads", 4}, {"num_key_value_heads", 2},
                         {"num_local_experts", 4},  {"head_dim", 32},           {"vocab_size", 1000}};
    const ModelSpec expected = read_model(config, "", {});
    auto shapes = shapes_of(expected);
    for (const char* name : {"gate_up_proj", "down_proj"}) {
        const std::string experts = std::string("model.layers.0.mlp.experts.") + name;
        const auto shape = shapes.at(experts);  // [experts, in, out]
        shapes.erase(experts);
        shapes[experts + "_blocks"] = {shape[0], shape[2], shape[1] / 32, 16};
        shapes[experts + "_scales"] = {shape[0], shape[2], shape[1] / 32};
    }
    write("model.safetensors", shapes);
    EXPECT_EQ(read("model.safetensors").parameters, expected.parameters);
    shapes.erase("model.layers.0.mlp.experts.down_proj_scales");
    write("model.safetensors", shapes);
    EXPECT_THAT(error_of("model.safetensors").message(), HasSubstr("mlp.experts.down_proj [4, 96, 64]"));
}

TEST_F(Safetensors, RefusesLatentAttentionWhoseHeadsNoShapeTells) {
    write("deepseek.safetensors", {{"model.embed_tokens.weight", {1000, 64}},
                                   {"model.layers.0.self_attn.kv_a_proj_with_mqa.weight", {24, 64}}});
    const Error error = error_of("deepseek.safetensors");
    EXPECT_EQ(error.code(), ErrorCode::not_supported);
    EXPECT_THAT(error.hint(), HasSubstr("config.json"));
}

TEST_F(Safetensors, InfersAPlainStackFromNamesAndShapes) {
    const ModelSpec expected = build_plain_stack(
        "x", {{20, 30, true, ActivationFunction::none}, {30, 5, false, ActivationFunction::none}},
        "cross_entropy");
    write("stack.safetensors", shapes_of(expected));
    const ModelSpec model = read("stack.safetensors");
    EXPECT_EQ(model.parameters, expected.parameters);
    EXPECT_EQ(model.block_kinds, expected.block_kinds);
    EXPECT_THAT(model.notes, testing::Contains(HasSubstr("no activation and cross_entropy is assumed")));
    // As many features out as in: the tutorial's loss.
    write("square.safetensors", {{"layers.0.linear.weight", {8, 8}}});
    EXPECT_TRUE(read("square.safetensors").target_is_input);
    EXPECT_FALSE(read_model({{"file", "square.safetensors"}, {"loss", "cross_entropy"}}, folder_.string(), {})
                     .target_is_input);
}

TEST_F(Safetensors, ReadsAPlainStackAsItsHeaderDescribesIt) {
    const json tensors = {
        {"layers.0.linear.weight", {{"dtype", "F32"}, {"shape", {3, 2}}, {"data_offsets", {0, 24}}}},
        {"layers.1.linear.weight", {{"dtype", "F32"}, {"shape", {2, 3}}, {"data_offsets", {24, 48}}}}};
    const auto describe = [&](const std::string& stack) {
        json header = tensors;
        header["__metadata__"] = {{"format", "pt"}, {"zeroplan_stack", stack}};
        write("stack.safetensors", header.dump(), 48);
    };
    describe(R"({"loss": "cross_entropy", "layers": [{"linear": [2, 3], "bias": false, "activation": "gelu"},
                                                     {"linear": [3, 2], "bias": false}]})");
    const ModelSpec model = read("stack.safetensors");
    const ModelSpec expected = build_plain_stack(
        "stack", {{2, 3, false, ActivationFunction::gelu}, {3, 2, false, ActivationFunction::none}},
        "cross_entropy");
    EXPECT_EQ(model, expected);
    // A description of another model is found out.
    describe(
        R"({"loss": "mse", "layers": [{"linear": [2, 4], "bias": false}, {"linear": [4, 2], "bias": false}]})");
    EXPECT_THAT(error_of("stack.safetensors").message(), AllOf(HasSubstr("[3, 2]"), HasSubstr("[4, 2]")));
    describe("{");
    EXPECT_THAT(error_of("stack.safetensors").place().file, HasSubstr("stack.safetensors"));
}

TEST_F(Safetensors, RefusesAStackWhoseLayersDoNotMeet) {
    write("gap.safetensors", {{"layers.0.linear.weight", {3, 2}}, {"layers.1.linear.weight", {2, 4}}});
    EXPECT_THAT(error_of("gap.safetensors").message(),
                HasSubstr("layer 1 takes 4 features, layer 0 gives 3"));
    write("hole.safetensors", {{"layers.0.linear.weight", {3, 2}}, {"layers.2.linear.weight", {2, 3}}});
    EXPECT_THAT(error_of("hole.safetensors").message(),
                HasSubstr("layers.2.linear.weight [2, 3] has no place"));
}

TEST_F(Safetensors, ReadsAnIndexAndItsShards) {
    const ModelSpec expected = read_model(small_llama, "", {});
    std::map<std::string, std::vector<std::uint64_t>> halves[2];
    json weight_map;
    for (const auto& [name, shape] : shapes_of(expected)) {
        const bool second = name > "model.layers.1";
        halves[second ? 1 : 0][name] = shape;
        weight_map[name] = second ? "model-2.safetensors" : "model-1.safetensors";
    }
    write("model-1.safetensors", halves[0]);
    write_text("model.safetensors.index.json",
               json{{"metadata", json::object()}, {"weight_map", weight_map}}.dump());
    const Error missing = error_of("model.safetensors.index.json");
    EXPECT_EQ(missing.code(), ErrorCode::not_found);
    EXPECT_THAT(missing.message(), HasSubstr("model-2.safetensors"));
    write("model-2.safetensors", halves[1]);
    EXPECT_EQ(read("model.safetensors.index.json").parameters, expected.parameters);
    EXPECT_EQ(read(".").parameters, expected.parameters);
    halves[1].erase("model.norm.weight");
    write("model-2.safetensors", halves[1]);
    EXPECT_THAT(error_of(".").message(), HasSubstr("model.norm.weight"));
}

TEST_F(Safetensors, ChecksShapesAgainstTheConfigBesideThem) {
    const ModelSpec expected = read_model(small_llama, "", {});
    write("model.safetensors", shapes_of(expected));
    write_text("config.json", small_llama.dump());
    EXPECT_EQ(read(".").parameters, expected.parameters);
    EXPECT_TRUE(read(".").notes.empty());
    json other = small_llama;
    other["intermediate_size"] = 1024;
    write_text("config.json", other.dump());
    const Error mismatch = error_of(".");
    EXPECT_THAT(mismatch.message(), AllOf(HasSubstr("model.layers.0.mlp.gate_proj.weight"),
                                          HasSubstr("[512, 256]"), HasSubstr("[1024, 256]")));
    other = small_llama;
    other["num_hidden_layers"] = 4;
    write_text("config.json", other.dump());
    EXPECT_THAT(error_of(".").message(), HasSubstr("is missing"));
    other["num_hidden_layers"] = 2;
    write_text("config.json", other.dump());
    EXPECT_THAT(error_of(".").message(), HasSubstr("model.layers.2."));
}

TEST_F(Safetensors, RefusesNamesOfOtherFamilies) {
    write("t5.safetensors", {{"shared.weight", {32128, 512}}});
    const Error error = error_of("t5.safetensors");
    EXPECT_EQ(error.code(), ErrorCode::not_supported);
    EXPECT_THAT(error.message(), HasSubstr("shared.weight"));
    EXPECT_THAT(error.hint(), HasSubstr("config.json"));
    error_of(".");
}

TEST_F(Safetensors, TakesAHeaderWithoutData) {
    const auto path =
        write("extract.safetensors", R"({"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}})", 0);
    EXPECT_EQ(read_safetensors(path).notes.size(), 1U);
}

TEST_F(Safetensors, AnswersDamagedFilesWithAnError) {
    const ModelSpec model = read_model({{"preset", "gpt2"}, {"n_layer", 1}}, "", {});
    const fs::path path = write("whole.safetensors", shapes_of(model));
    const auto header_end = static_cast<std::size_t>(fs::file_size(path) - 2 * model.parameter_count());
    std::string bytes(header_end, '\0');
    std::ifstream(path, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    for (std::size_t at = 0; at < bytes.size(); at += 7) {
        std::string damaged = bytes;
        damaged[at] = static_cast<char>(damaged[at] ^ 0x15);
        write_text("damaged.safetensors", damaged);
        try {
            read("damaged.safetensors");
        } catch (const Error& error) {
            EXPECT_FALSE(error.message().empty());
        }
    }
}

TEST_F(Safetensors, RefusesBrokenFiles) {
    const auto message = [this](const std::string& header, std::uint64_t data) {
        write("broken.safetensors", header, data);
        return error_of("broken.safetensors").message();
    };
    const std::string a = R"({"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}})";
    EXPECT_THAT(message(a, 8), AllOf(HasSubstr("16"), HasSubstr("8 bytes")));
    EXPECT_THAT(message(R"({"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 8]}})", 8),
                HasSubstr("needs 16"));
    EXPECT_THAT(message(R"({"a": {"dtype": "F32", "shape": [4], "data_offsets": [16, 0]}})", 16),
                HasSubstr("begin"));
    EXPECT_THAT(message(R"({"a": {"dtype": "F33", "shape": [4], "data_offsets": [0, 16]}})", 16),
                HasSubstr("F33"));
    EXPECT_THAT(message(R"({"a": {"dtype": "F32", "data_offsets": [0, 16]}})", 16), HasSubstr("shape"));
    EXPECT_THAT(message(R"({"a": {"dtype": "F32", "shape": [-4], "data_offsets": [0, 16]}})", 16),
                HasSubstr("-4"));
    EXPECT_THAT(message(R"({"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]},
                           "b": {"dtype": "F32", "shape": [4], "data_offsets": [8, 24]}})",
                        24),
                HasSubstr("overlap"));
    EXPECT_THAT(message(R"({"a": {"dtype": "F32", "shape": [9007199254740992, 9007199254740992],
                           "data_offsets": [0, 16]}})",
                        16),
                HasSubstr("2^64"));
    EXPECT_THAT(message("{\"a\":", 0), HasSubstr("too early"));
    EXPECT_THAT(message("[]", 0), HasSubstr("object"));

    write_text("short.safetensors", "1234");
    EXPECT_THAT(error_of("short.safetensors").message(), HasSubstr("4 bytes"));
    write_text("text.safetensors", "this is a text file and no tensors");
    EXPECT_THAT(error_of("text.safetensors").message(), HasSubstr("header of"));
    write("long.safetensors", a, 16);
    fs::resize_file(folder_ / "long.safetensors", 20);
    EXPECT_THAT(error_of("long.safetensors").message(), HasSubstr("only 12 bytes follow"));
}

}  // namespace
}  // namespace zeroplan
