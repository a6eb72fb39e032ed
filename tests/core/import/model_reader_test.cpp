#include "import/model_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "embedded_files.hpp"
#include "json/parse.hpp"
#include "zeroplan/io.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string configs = std::string(ZEROPLAN_TEST_DATA) + "/core/data/configs";

ModelSpec read(const json& model) {
    return read_model(model, configs, {}, {"scenario.json", "/model"});
}

Error error_of(const json& model) {
    try {
        read(model);
    } catch (const Error& error) {
        return error;
    }
    ADD_FAILURE() << "accepted: " << model;
    return Error(ErrorCode::invalid_input, "");
}

struct Count {
    const char* name;
    std::uint64_t parameters;
};

// Published counts. GPT-2's are those of its checkpoints without the causal masks.
constexpr Count preset_counts[] = {
    {"gpt2", 124'439'808},
    {"gpt2-medium", 354'823'168},
    {"gpt2-large", 774'030'080},
    {"gpt2-xl", 1'557'611'200},
    {"llama-2-7b", 6'738'415'616},
    {"llama-2-13b", 13'015'864'320},
    {"llama-2-70b", 68'976'648'192},
    {"llama-3-8b", 8'030'261'248},
    {"llama-3-70b", 70'553'706'496},
    {"llama-3-405b", 405'853'388'800},
    {"mistral-7b", 7'241'732'096},
    {"qwen2.5-0.5b", 494'032'768},
    {"qwen2.5-7b", 7'615'616'512},
    {"qwen2.5-32b", 32'763'876'352},
    {"qwen3-8b", 8'190'735'360},
    {"tutorial-mlp", 20'200},
    {"gemma-2-9b", 9'241'705'984},
    {"mixtral-8x7b", 46'702'792'704},
    {"phi-3-mini", 3'821'079'552},
    {"falcon-7b", 6'921'720'704},
    {"mpt-7b", 6'649'286'656},
    {"bloom-176b", 176'247'271'424},
    {"deepseek-v3", 671'026'419'200},
    {"qwen3-30b-a3b", 30'532'122'624},
    {"gpt-oss-20b", 20'914'757'184},
    {"gpt-oss-120b", 116'829'156'672},
    {"t5-11b", 11'307'321'344},
    {"bert-large-uncased", 335'174'458},
};

constexpr Count file_counts[] = {
    {"llama-2-7b", 6'738'415'616},        {"llama-3-8b", 8'030'261'248},
    {"llama-3.1-70b", 70'553'706'496},    {"llama-3.2-1b-tied", 1'235'814'400},
    {"mistral-7b", 7'241'732'096},        {"qwen2.5-0.5b-tied-bias", 494'032'768},
    {"qwen3-8b", 8'190'735'360},          {"gpt2", 124'439'808},
    {"mixtral-8x7b", 46'702'792'704},     {"qwen3-30b-a3b-moe", 30'532'122'624},
    {"deepseek-v3", 671'026'419'200},     {"bloom-560m", 559'214'592},
    {"bloom-7b1", 7'069'016'064},         {"gpt-neox-20b", 20'554'567'680},
    {"opt-13b", 12'853'473'280},          {"phi-2-headbias", 2'779'683'840},
    {"t5-3b-encdec", 2'851'598'336},      {"t5-small", 60'506'624},
    {"gemma-3-4b-nested", 4'300'079'472}, {"llava-1.5-7b-multimodal", 7'063'427'072},
};

// Parameters that one token uses.
constexpr Count active_counts[] = {
    {"llama-3-8b", 8'030'261'248},
    {"mixtral-8x7b", 12'879'925'248},
    {"qwen3-30b-a3b-moe", 3'353'032'704},
    {"deepseek-v3", 37'552'297'472},
};

TEST(ReadModel, CountsWhatOneTokenUses) {
    for (const Count& file : active_counts) {
        const ModelSpec model = read({{"file", std::string(file.name) + ".json"}});
        EXPECT_EQ(model.active_parameter_count(), file.parameters) << file.name;
    }
}

TEST(ReadModel, CountsEveryPresetExactly) {
    EXPECT_EQ(std::size(preset_counts), embedded::models().size());
    for (const Count& preset : preset_counts) {
        const ModelSpec model = read({{"preset", preset.name}});
        EXPECT_EQ(model.parameter_count(), preset.parameters) << preset.name;
        EXPECT_EQ(model.name, preset.name);
        EXPECT_TRUE(model.notes.empty()) << preset.name;
    }
}

TEST(ReadModel, CountsConfigFilesExactly) {
    for (const Count& file : file_counts) {
        const ModelSpec model = read({{"file", std::string(file.name) + ".json"}});
        EXPECT_EQ(model.parameter_count(), file.parameters) << file.name;
        EXPECT_EQ(model.name, file.name);
    }
}

TEST(ReadModel, RefusesFamiliesThatAreNotBuiltByName) {
    const Error error = error_of({{"model_type", "whisper"}, {"d_model", 512}});
    EXPECT_EQ(error.code(), ErrorCode::not_supported);
    EXPECT_THAT(error.message(), HasSubstr("\"whisper\""));
    EXPECT_EQ(error.place().pointer, "/model/model_type");
    EXPECT_THAT(error.hint(), HasSubstr("built are llama"));
}

TEST(ReadModel, NamesLineAndColumnOfTextThatIsNoJson) {
    const Error truncated = error_of({{"file", "broken-truncated.json"}});
    EXPECT_THAT(truncated.message(), HasSubstr("ends too early"));
    EXPECT_THAT(truncated.place().pointer, HasSubstr("line "));
    const Error infinity = error_of({{"file", "json-with-infinity.json"}});
    EXPECT_THAT(infinity.message(), HasSubstr("Infinity"));
}

TEST(ReadModel, ReadsTheBodyOfAConfig) {
    const json body = json::parse(R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256})");
    EXPECT_EQ(read(body).parameter_count(), 8'030'261'248U);
    EXPECT_EQ(read({{"architectures", {"LlamaForCausalLM"}}}).parameter_count(), 6'738'415'616U);
}

TEST(ReadModel, OverridesAPreset) {
    const ModelSpec two = read({{"preset", "llama-2-7b"}, {"num_hidden_layers", 2}});
    EXPECT_EQ(two.parameter_count(), 2U * 202'383'360 + 2 * 131'072'000 + 4096);
    EXPECT_EQ(two.layers, 2U);
    // llm.c pads GPT-2's vocabulary to a multiple of 128.
    EXPECT_EQ(read({{"preset", "gpt2"}, {"vocab_size_padded", 50304}}).parameter_count(), 124'475'904U);
    // Mistral 7B v0.3.
    EXPECT_EQ(read({{"preset", "mistral-7b"}, {"vocab_size", 32768}}).parameter_count(), 7'248'023'552U);
    // The preset calls it n_embd.
    EXPECT_EQ(read({{"preset", "gpt2"}, {"hidden_size", 1536}}).hidden_size, 1536U);
    EXPECT_EQ(read({{"file", "gpt2.json"}, {"n_layer", 1}}).layers, 1U);
}

TEST(ReadModel, RefusesUnknownKeysBesideAPreset) {
    const Error error = error_of({{"preset", "gpt2"}, {"num_hiden_layers", 2}});
    EXPECT_EQ(error.place(), (ErrorPlace{"scenario.json", "/model/num_hiden_layers"}));
    EXPECT_EQ(error.hint(), "did you mean \"num_hidden_layers\"?");
    EXPECT_NO_THROW(read({{"preset", "gpt2"}, {"resid_pdrop", 0}}));  // the preset has the key
    error_of({{"preset", "tutorial-mlp"}, {"hidden_size", 4}});
}

TEST(ReadModel, NamesTheNearestPresetAndMissingFiles) {
    EXPECT_THAT(error_of({{"preset", "llama-3-8bb"}}).hint(), HasSubstr("\"llama-3-8b\""));
    const Error missing = error_of({{"file", "absent.json"}});
    EXPECT_EQ(missing.code(), ErrorCode::not_found);
    EXPECT_EQ(missing.place().pointer, "/model/file");
    error_of({{"file", ""}});
    error_of({{"preset", "gpt2"}, {"file", "gpt2.json"}});
    error_of({{"preset", 3}});
    error_of(json::object());
    error_of(3);
}

TEST(ReadModel, ReadsAPlainStack) {
    const ModelSpec model = read(json::parse(
        R"({"layers": [{"linear": [50000, 50000], "bias": false}, {"linear": [50000, 50000], "bias": false},
                       {"linear": [50000, 50000], "bias": false, "activation": "relu"}], "loss": "mse"})"));
    EXPECT_EQ(model.parameter_count(), 7'500'000'000U);
    EXPECT_EQ(model.batch, BatchKind::features);
}

TEST(ReadModel, NamesThePlaceOfAWrongStack) {
    const auto pointer = [](const char* text) { return error_of(json::parse(text)).place().pointer; };
    EXPECT_EQ(pointer(R"({"layers": [{"linear": [4]}], "loss": "mse"})"), "/model/layers/0/linear");
    EXPECT_EQ(pointer(R"({"layers": [{"linear": [4, 0]}], "loss": "mse"})"), "/model/layers/0/linear/1");
    EXPECT_EQ(pointer(R"({"layers": [{"linear": [4, 4], "bais": true}], "loss": "mse"})"),
              "/model/layers/0/bais");
    EXPECT_EQ(pointer(R"({"layers": [{"linear": [4, 4], "activation": "rel"}], "loss": "mse"})"),
              "/model/layers/0/activation");
    EXPECT_EQ(pointer(R"({"layers": 4, "loss": "mse"})"), "/model/layers");
    EXPECT_EQ(pointer(R"({"layers": [{"linear": [4, 4]}], "lossy": "mse"})"), "/model/lossy");
    error_of(json::parse(R"({"layers": [{"linear": [4, 4]}]})"));
    error_of(json::parse(R"({"layers": [], "loss": "mse"})"));
    const Error widths =
        error_of(json::parse(R"({"layers": [{"linear": [4, 5]}, {"linear": [6, 4]}], "loss": "mse"})"));
    EXPECT_EQ(widths.place().file, "scenario.json");
    EXPECT_THAT(widths.message(), testing::AllOf(HasSubstr("5"), HasSubstr("6")));
}

/// Reads `text` as a config.json: a model or an Error, whatever it is.
void read_or_refuse(const std::string& text) {
    try {
        read(parse_json(text, "damaged.json"));
    } catch (const Error& error) {
        EXPECT_FALSE(error.message().empty());
    }
}

TEST(ReadModel, AnswersDamagedTextWithAnError) {
    const std::string text = read_text_file(configs + "/llama-3.2-1b-tied.json");
    for (std::size_t end = 0; end < text.size(); ++end) read_or_refuse(text.substr(0, end));
    for (std::size_t at = 0; at < text.size(); ++at)
        for (const char c : {'\0', '"', '9', '-', '{', ']', 'e', '\xff'}) {
            std::string damaged = text;
            damaged[at] = c;
            read_or_refuse(damaged);
        }
}

}  // namespace
}  // namespace zeroplan
