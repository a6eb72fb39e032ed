#include <fmt/format.h>

#include "architectures/encoder.hpp"
#include "import/config_other.hpp"

namespace zeroplan {
namespace {

/// "relu", "gated-gelu": the MLP and whether it is gated.
std::string mlp_of(const ConfigObject& config, const char* usual) {
    const std::string projection = config.string({"feed_forward_proj"}).value_or(usual);
    const bool gated = projection.starts_with("gated-");
    const std::string act = gated ? projection.substr(6) : projection;
    const bool gelu = act.starts_with("gelu");
    if (gated && (gelu || act == "silu")) return gelu ? "geglu" : "swiglu";
    if (!gated && (gelu || act == "relu")) return gelu ? "gelu" : "relu";
    config.fail({"feed_forward_proj"}, fmt::format("feed_forward_proj \"{}\" is not modelled", projection),
                "one of: relu, gelu, gated-gelu, gated-silu", ErrorCode::not_supported);
}

/// What absent keys stand for.
struct T5Defaults {
    LayerDefaults sizes;
    const char* projection;
    bool tied;
};

ReadConfig read_stacks(const ConfigObject& config, const std::string& name, const T5Defaults& usual) {
    ReadConfig result;
    EncoderDecoderConfig t5;
    DecoderConfig& layers = t5.layers;
    LayerDefaults sizes = usual.sizes;
    sizes.head_dim = size_or(config, {"d_kv"}, 64);
    layers = read_layers(config, sizes);
    layers.name = name;
    layers.architecture = counted_class(config);
    layers.mlp = mlp_of(config, usual.projection);
    // "gated-gelu" is the tanh form written in Python (T5Config: dense_act_fn = "gelu_new").
    if (layers.mlp == "geglu") layers.activation = "gelu_new";
    layers.position_embedding = config.string({"position_embedding"}).value_or("relative");
    layers.normalization = config.string({"normalization"}).value_or("rmsnorm");
    layers.attention_bias = layers.attention_output_bias = layers.mlp_bias =
        config.boolean("linear_bias").value_or(false);
    layers.tie_word_embeddings = config.boolean("tie_word_embeddings").value_or(usual.tied);
    t5.num_decoder_layers = layers_or(config, {"num_decoder_layers"}, layers.num_hidden_layers);
    t5.decoder_sequence_length = size_or(config, {"decoder_sequence_length"}, 0);
    if (layers.position_embedding == "relative")
        t5.relative_buckets = size_or(config, {"relative_attention_num_buckets"}, 32);
    result.decoder = layers;
    result.build = [t5](const LoweringOptions& options) { return build_t5(t5, options); };
    return result;
}

}  // namespace

// Defaults of transformers' configuration_t5.py.
ReadConfig read_t5(const ConfigObject& config, const std::string& name) {
    return read_stacks(config, name,
                       {{.vocabulary = 32128,
                         .hidden = 512,
                         .intermediate = 2048,
                         .layers = 6,
                         .heads = 8,
                         .positions = 512},
                        "relu",
                        true});
}

// Defaults of configuration_mt5.py up to transformers 4; 5 ties the output layer whatever the file says.
ReadConfig read_mt5(const ConfigObject& config, const std::string& name) {
    return read_stacks(config, name,
                       {{.vocabulary = 250112,
                         .hidden = 512,
                         .intermediate = 1024,
                         .layers = 8,
                         .heads = 6,
                         .positions = 512},
                        "gated-gelu",
                        false});
}

}  // namespace zeroplan
