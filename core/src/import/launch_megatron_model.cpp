#include <algorithm>
#include <array>

#include "import/import_builder.hpp"
#include "import/launch_megatron.hpp"
#include "printable.hpp"
#include "zeroplan/units.hpp"

namespace zeroplan {
namespace {

struct Key {
    const char *flag, *pointer;
};
constexpr std::array sizes{
    Key{"--num-layers", "/model/num_hidden_layers"}, Key{"--hidden-size", "/model/hidden_size"},
    Key{"--num-attention-heads", "/model/num_attention_heads"}, Key{"--kv-channels", "/model/head_dim"},
    Key{"--max-position-embeddings", "/model/max_position_embeddings"}};

/// Scripts of other models have these arguments, too, but not this meaning of them.
bool is_gpt(const ShellLine& line) {
    return std::any_of(line.words.begin(), line.words.end(),
                       [](const std::string& word) { return word.ends_with("pretrain_gpt.py"); });
}

/// The width of the MLP without --ffn-hidden-size: four times the hidden size, and of SwiGLU two thirds of
/// that in multiples of 64. source: megatron/training/arguments.py, validate_args
std::uint64_t default_width(std::uint64_t hidden, bool swiglu) {
    return swiglu ? hidden * 8 / 3 / 64 * 64 : 4 * hidden;
}

/// What the flags choose between. The defaults are GPT-2's shape.
void import_kinds(Import& import, const ShellLine& line, const LaunchFlags& flags, bool swiglu) {
    const auto choose = [&](const char* pointer, const char* word, const char* flag) {
        state_word(import, pointer, word, line.number, flag);
    };
    const bool squared_relu = flags.is_on("--squared-relu");
    choose("/model/mlp",
           swiglu         ? "swiglu"
           : squared_relu ? "squared_relu"
                          : "gelu",
           swiglu         ? "--swiglu"
           : squared_relu ? "--squared-relu"
                          : "without --swiglu");
    const std::string position =
        flags.value({"--position-embedding-type"})
            .value_or(flags.is_on("--use-rotary-position-embeddings") ? "rope" : "learned_absolute");
    if (position == "learned_absolute" || position == "none" || position == "rope")
        choose("/model/position_embedding", position == "learned_absolute" ? "learned" : position.c_str(),
               "--position-embedding-type");
    else
        note(import, Finding::missing, "--position-embedding-type", line.number,
             fmt::format("\"{}\" is not planned here", printable(position.substr(0, 60))));
    choose("/model/normalization", flags.value({"--normalization"}) == "RMSNorm" ? "rmsnorm" : "layernorm",
           "--normalization");
    state(import, "/model/linear_bias", flags.is_on("--disable-bias-linear") ? "false" : "true", line.number,
          "--disable-bias-linear");
    state(import, "/model/tie_word_embeddings",
          flags.is_on("--untie-embeddings-and-output-weights") ? "false" : "true", line.number,
          "--untie-embeddings-and-output-weights");
}

/// Key and value heads are shared only with --group-query-attention.
void import_groups(Import& import, const ShellLine& line, const LaunchFlags& flags) {
    const auto groups = count_of(import, line, flags, "--num-query-groups");
    if (!flags.is_on("--group-query-attention")) {
        if (groups)
            note(import, Finding::ignored, "--num-query-groups", line.number,
                 "every head has a key and value of its own without --group-query-attention");
        return;
    }
    state(import, "/model/num_key_value_heads", std::to_string(groups.value_or(1)), line.number,
          "--num-query-groups");
}

/// Every tensor-parallel rank gets a multiple of --make-vocab-size-divisible-by. source:
/// megatron/training/tokenizer/tokenizer.py, _vocab_size_with_padding
void import_vocabulary(Import& import, const ShellLine& line, const LaunchFlags& flags) {
    const auto words = count_of(import, line, flags, "--vocab-size");
    const std::uint64_t multiple =
        count_of(import, line, flags, "--make-vocab-size-divisible-by").value_or(128) *
        count_of(import, line, flags, "--tensor-model-parallel-size").value_or(1);
    if (!words)
        return ask(import, "/model/vocab_size", "--vocab-size", line.number,
                   "the tokenizer's size doesn't stand here", "tell it with --set /model/vocab_size=…");
    state(import, "/model/vocab_size", std::to_string(*words), line.number, "--vocab-size");
    state(import, "/model/vocab_size_padded", std::to_string(round_up(*words, multiple)), line.number,
          fmt::format("--vocab-size in multiples of {}", multiple));
}

/// Both probabilities are 0.1 unless told otherwise; one mask is planned with the other.
void import_dropout(Import& import, const ShellLine& line, const LaunchFlags& flags) {
    const auto is_off = [&](const char* flag) {
        const auto text = flags.value({flag});
        return text && text->find_first_not_of("0.") == std::string::npos;
    };
    const bool attention = is_off("--attention-dropout"), hidden = is_off("--hidden-dropout");
    state(import, "/model/dropout", attention && hidden ? "false" : "true", line.number,
          hidden ? "--attention-dropout" : "--hidden-dropout");
}

}  // namespace

void import_megatron_model(Import& import, const ShellLine& line, const LaunchFlags& flags) {
    const auto hidden = count_of(import, line, flags, "--hidden-size");
    if (!is_gpt(line) || flags.has("--num-experts") || !hidden) {
        ask(import, "/model", "--model", line.number,
            "which model it is doesn't follow from what is read of the line",
            "name it with --model: a preset (zeroplan list models) or its config.json");
        return;
    }
    // The frame of a decoder, of which every choice below is stated.
    state_word(import, "/model/model_type", "llama", line.number, "pretrain_gpt.py");
    for (const Key& size : sizes)
        if (const auto value = count_of(import, line, flags, size.flag))
            state(import, size.pointer, std::to_string(*value), line.number, size.flag);
    const bool swiglu = flags.is_on("--swiglu");
    const auto width = count_of(import, line, flags, "--ffn-hidden-size");
    state(import, "/model/intermediate_size", std::to_string(width.value_or(default_width(*hidden, swiglu))),
          line.number, width ? "--ffn-hidden-size" : "without --ffn-hidden-size");
    import_groups(import, line, flags);
    import_kinds(import, line, flags, swiglu);
    import_dropout(import, line, flags);
    import_vocabulary(import, line, flags);
}

}  // namespace zeroplan
