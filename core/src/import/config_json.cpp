#include "import/config_json.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "architectures/decoder_names.hpp"
#include "import/choose_family.hpp"
#include "import/config_experts.hpp"
#include "import/config_other.hpp"
#include "import/config_sizes.hpp"
#include "nearest.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

// Names of the sizes over the families: Llama's own, then GPT-2's and those of generic configurations.
const KeyNames vocabulary_names{"vocab_size"};
const KeyNames hidden_names{"hidden_size", "n_embd", "n_embed", "d_model"};
const KeyNames intermediate_names{"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"};
const KeyNames layer_names{"num_hidden_layers", "n_layer", "n_layers", "num_layers"};
const KeyNames head_names{"num_attention_heads", "n_head", "n_heads", "num_heads"};
const KeyNames key_value_head_names{"num_key_value_heads", "num_query_groups"};
const KeyNames head_dim_names{"head_dim"};
const KeyNames position_names{"max_position_embeddings", "n_positions"};
const KeyNames padded_names{"vocab_size_padded"};
const KeyNames activation_names{"hidden_act", "activation_function", "hidden_activation"};

constexpr std::string_view other_keys[] = {
    "model_type", "architectures",  "mlp",      "position_embedding",  "normalization",  "linear_bias",
    "dropout",    "attention_bias", "mlp_bias", "tie_word_embeddings", "sliding_window", "use_sliding_window",
    "description"};

// No model is near these; larger numbers are mistakes.
constexpr std::uint64_t most_vocabulary = 1ULL << 30, most_width = 1ULL << 24, most_layers = 10'000,
                        most_heads = 1ULL << 16, most_positions = 1ULL << 30;

/// Keys that make a model with experts of a family that has none.
constexpr std::string_view expert_counts[] = {"num_local_experts", "num_experts", "n_routed_experts"};

std::vector<std::string_view> known_keys() {
    std::vector<std::string_view> keys(std::begin(other_keys), std::end(other_keys));
    for (const KeyNames* names :
         {&vocabulary_names, &hidden_names, &intermediate_names, &layer_names, &head_names,
          &key_value_head_names, &head_dim_names, &position_names, &padded_names, &activation_names})
        keys.insert(keys.end(), names->begin(), names->end());
    for (const auto& more : {expert_config_keys(), latent_attention_keys()})
        keys.insert(keys.end(), more.begin(), more.end());
    return keys;
}

/// Beside a preset or file, a key has to be one that is read, or one that the preset or file has.
void check_overrides(const ConfigObject& config, const std::vector<std::string_view>& known) {
    if (!config.overrides()) return;
    for (const auto& item : config.overrides()->value().items()) {
        const bool is_known = std::find(known.begin(), known.end(), item.key()) != known.end();
        if (is_known || item.key() == "preset" || item.key() == "file" ||
            config.config().value().contains(item.key()))
            continue;
        config.overrides()->fail(item.key(), fmt::format("unknown key \"{}\"", item.key()),
                                 nearest_hint(item.key(), std::span(known)));
    }
}

/// A config.json has many keys of no interest here, but a letter or two beside a shape's name is a slip, and
/// taking the default for it a silent guess.
void check_slips(const ObjectReader& config, const std::vector<std::string_view>& known) {
    constexpr std::size_t shortest = 5, long_enough_for_two = 10;
    for (const auto& item : config.value().items()) {
        const std::string& key = item.key();
        if (key.size() < shortest || std::find(known.begin(), known.end(), key) != known.end()) continue;
        const std::size_t slips = key.size() < long_enough_for_two ? 1 : 2;
        for (const std::string_view meant : known)
            if (edit_distance(key, meant) <= slips && !config.has(meant))
                config.fail(key, fmt::format("unknown key \"{}\"", key),
                            fmt::format("did you mean \"{}\"?", meant));
    }
}

/// Our key is a bool; a config.json's is a probability, which says nothing of how the model is trained.
bool keeps_dropout_masks(const ConfigObject& config) {
    const json* given = config.holder("dropout").find("dropout");
    if (given != nullptr && given->is_number()) return false;
    return config.boolean("dropout").value_or(false);
}

/// Reads one configuration of one family.
class FamilyReader {
public:
    FamilyReader(const ConfigObject& config, const ConfigFamily& family)
        : config_(config), family_(family), usual_(family_sizes(family.model_type)) {}

    ReadConfig read(const std::string& name) {
        refuse_other_models();
        DecoderConfig& decoder = result_.decoder;
        decoder.name = name;
        decoder.architecture = family_.architecture;
        decoder.family = family_.names;
        decoder.parameter_prefix = decoder_names(family_.names).prefix;
        decoder.fused_qkv = decoder_names(family_.names).packs_qkv;
        result_.dropout = keeps_dropout_masks(config_);
        read_sizes();
        read_heads();
        read_kinds();
        read_vocabulary();
        read_positions();
        decoder.experts = read_experts(config_, family_, decoder.intermediate_size);
        if (family_.latent_attention) decoder.latent_attention = read_latent_attention(config_);
        if (family_.read_own != nullptr) family_.read_own(config_, decoder);
        add_notes();
        return std::move(result_);
    }

private:
    void refuse_other_models() const {
        for (const std::string_view key : family_.experts == ExpertFamily::none
                                              ? std::span(expert_counts)
                                              : std::span<const std::string_view>())
            if (const auto experts = config_.holder(key).integer(key); experts.value_or(0) > 1)
                config_.fail(
                    {key},
                    fmt::format("a {} model with {} experts is not modelled", family_.model_type, *experts),
                    "remove the key to plan its dense twin", ErrorCode::not_supported);
        if (config_.boolean("add_cross_attention").value_or(false))
            config_.fail({"add_cross_attention"}, "cross-attention layers are not modelled",
                         "set add_cross_attention to false to plan the decoder alone",
                         ErrorCode::not_supported);
        if (config_.has("decoder_sequence_length"))
            config_.fail(
                {"decoder_sequence_length"},
                fmt::format("a {} model has no encoder, so no decoder_sequence_length", family_.model_type),
                "remove the key");
    }

    std::uint64_t size(const KeyNames& names, std::uint64_t most, std::uint64_t fallback) const {
        const std::uint64_t value = config_.size(names, most).value_or(fallback);
        if (value == 0)
            config_.fail(
                {}, fmt::format("a model of model_type \"{}\" needs \"{}\"", family_.model_type, names[0]),
                fmt::format("add \"{}\"", names[0]));
        return value;
    }

    void read_sizes() {
        DecoderConfig& decoder = result_.decoder;
        decoder.hidden_size = size(hidden_names, most_width, usual_.hidden_size);
        decoder.num_hidden_layers = size(layer_names, most_layers, usual_.num_hidden_layers);
        const std::uint64_t usual =
            usual_.intermediate_size != 0 ? usual_.intermediate_size : 4 * decoder.hidden_size;
        decoder.intermediate_size = size(intermediate_names, most_width, usual);
    }

    void read_heads() {
        DecoderConfig& decoder = result_.decoder;
        const std::uint64_t hidden = decoder.hidden_size;
        const std::uint64_t heads = size(head_names, most_heads, usual_.num_attention_heads);
        decoder.num_attention_heads = heads;
        const std::uint64_t usual = usual_.num_key_value_heads != 0 ? usual_.num_key_value_heads : heads;
        const std::uint64_t shared = size(key_value_head_names, most_heads, usual);
        decoder.num_key_value_heads = shared;
        if (heads % shared != 0)
            config_.fail(
                config_.size(key_value_head_names, most_heads) ? key_value_head_names : head_names,
                fmt::format("{} attention heads do not divide into {} key/value heads", heads, shared),
                "num_key_value_heads has to divide num_attention_heads");
        const auto head_dim = config_.size(head_dim_names, most_width);
        if (!head_dim && usual_.head_dim == 0 && hidden % heads != 0)
            config_.fail(config_.size(hidden_names, most_width) ? hidden_names : head_names,
                         fmt::format("hidden size {} is not divisible by {} attention heads", hidden, heads),
                         fmt::format("take hidden size {} or {}, or give head_dim", hidden / heads * heads,
                                     (hidden / heads + 1) * heads));
        decoder.head_dim = head_dim ? *head_dim : usual_.head_dim != 0 ? usual_.head_dim : hidden / heads;
    }

    void read_kinds() {
        DecoderConfig& decoder = result_.decoder;
        decoder.mlp = config_.has("mlp") ? word("mlp", {"swiglu", "geglu", "gelu", "relu", "squared_relu"})
                                         : mlp_of_activation();
        decoder.position_embedding = config_.has("position_embedding")
                                         ? word("position_embedding", {"rope", "learned", "alibi", "none"})
                                         : std::string(family_.position_embedding);
        decoder.normalization = config_.has("normalization") ? word("normalization", {"rmsnorm", "layernorm"})
                                                             : std::string(family_.normalization);
        decoder.activation = activation_word().value_or(std::string(family_.activation));
        decoder.query_key_norm = family_.query_key_norm;
        decoder.attention_bias = family_.biases.query_key_value;
        decoder.attention_output_bias = family_.biases.output;
        decoder.mlp_bias = family_.biases.mlp;
        if (family_.reads_attention_bias)
            decoder.attention_bias = decoder.attention_output_bias =
                config_.boolean("attention_bias").value_or(false);
        if (family_.reads_mlp_bias) decoder.mlp_bias = config_.boolean("mlp_bias").value_or(false);
        if (const auto bias = config_.boolean("linear_bias"))
            decoder.attention_bias = decoder.attention_output_bias = decoder.mlp_bias = *bias;
        decoder.tie_word_embeddings =
            config_.boolean("tie_word_embeddings").value_or(family_.tie_word_embeddings);
    }

    std::string word(std::string_view key, std::initializer_list<std::string_view> words) const {
        const std::string found = *config_.string({key});
        const std::vector<std::string_view> known(words);
        if (std::find(known.begin(), known.end(), found) == known.end())
            config_.holder(key).fail_unknown_word(key, found, known);
        return found;
    }

    /// Gemma's first files name two, and hidden_activation is the one that its class reads.
    std::optional<std::string> activation_word() const {
        const auto first = config_.string({"hidden_activation"});
        return first ? first : config_.string(activation_names);
    }

    /// The family's MLP with the activation that the config names.
    std::string mlp_of_activation() const {
        const auto activation = activation_word();
        if (!activation) return std::string(family_.mlp);
        const bool gated = family_.mlp == "swiglu" || family_.mlp == "geglu";
        const bool is_gelu = activation->starts_with("gelu") || *activation == "quick_gelu";
        if (gated && (*activation == "silu" || *activation == "swish")) return "swiglu";
        if (is_gelu) return gated ? "geglu" : "gelu";
        if (!gated && *activation == "relu") return "relu";
        if (!gated && (*activation == "relu2" || *activation == "relu_squared")) return "squared_relu";
        config_.fail(
            activation_names,
            fmt::format("activation \"{}\" in a {} model is not modelled", *activation, family_.model_type),
            "give mlp, one of: swiglu, geglu, gelu, relu, squared_relu", ErrorCode::not_supported);
    }

    void read_vocabulary() {
        const std::uint64_t vocabulary = size(vocabulary_names, most_vocabulary, usual_.vocab_size);
        const std::uint64_t padded = config_.size(padded_names, most_vocabulary).value_or(vocabulary);
        if (padded < vocabulary)
            config_.fail(padded_names,
                         fmt::format("vocab_size_padded {} is below vocab_size {}", padded, vocabulary),
                         "padding only adds rows");
        result_.decoder.vocab_size = padded;
    }

    void read_positions() {
        const bool has_table = result_.decoder.position_embedding == "learned";
        // Only a table of learned positions makes the length a shape; without one it is the default sequence
        // length.
        const std::uint64_t usual =
            usual_.max_position_embeddings != 0 || has_table ? usual_.max_position_embeddings : 2048;
        result_.decoder.max_position_embeddings = size(position_names, most_positions, usual);
        // Qwen's files state a window and switch it off; a file without the switch means what it states.
        if (config_.boolean("use_sliding_window").value_or(true))
            result_.decoder.sliding_window = config_.size({"sliding_window"}, most_positions).value_or(0);
    }

    void add_notes() {
        const std::string named = first_architecture(config_);
        if (!named.empty() && named != family_.architecture)
            result_.notes.push_back(
                fmt::format("the file is of class {}; counted is {}", named, family_.architecture));
        if (!family_.note.empty()) result_.notes.emplace_back(family_.note);
        if (const auto layers = config_.size({"num_nextn_predict_layers"}, most_layers))
            result_.notes.push_back(fmt::format(
                "{} layer(s) for multi-token prediction stand in the file; they are not counted", *layers));
        if (config_.has("quantization_config"))
            result_.notes.push_back(
                "the checkpoint is stored quantized; training is planned with the dtypes of the scenario");
    }

    const ConfigObject& config_;
    const ConfigFamily& family_;
    FamilySizes usual_;
    ReadConfig result_;
};

}  // namespace

ReadConfig read_decoder_config(const ConfigObject& config, const std::string& name) {
    const ConfigFamily& family = choose_family(config);
    std::vector<std::string_view> known = known_keys();
    known.insert(known.end(), family.own_keys.begin(), family.own_keys.end());
    check_overrides(config, known);
    check_slips(config.config(), known);
    return FamilyReader(config, family).read(name);
}

ReadConfig read_config(const ConfigObject& config, const std::string& name) {
    const OtherFamily* other = find_other_family(config);
    if (other == nullptr) return read_decoder_config(config, name);
    std::vector<std::string_view> known = known_keys();
    known.insert(known.end(), other->keys.begin(), other->keys.end());
    check_overrides(config, known);
    check_slips(config.config(), known);
    ReadConfig result = other->read(config, name);
    result.dropout = keeps_dropout_masks(config);
    return result;
}

ModelSpec build_model(const ReadConfig& config, LoweringOptions options) {
    options.dropout = config.dropout;
    ModelSpec model = config.build ? config.build(options) : build_decoder(config.decoder, options);
    model.notes = config.notes;
    return model;
}

}  // namespace zeroplan
