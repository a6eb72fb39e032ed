#include "import/infer_config.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace zeroplan {
namespace {

using nlohmann::json;

/// Lookups in the tensors of one checkpoint, all behind one prefix.
class Shapes {
public:
    Shapes(const CheckpointHeader& checkpoint, std::string prefix)
        : checkpoint_(checkpoint), prefix_(std::move(prefix)) {}

    bool has(const std::string& name) const { return checkpoint_.tensors.contains(prefix_ + name); }

    /// Size `dimension` of a tensor of `dimensions`; throws if it is not there.
    std::uint64_t size(const std::string& name, std::size_t dimension, std::size_t dimensions = 2) const {
        const auto found = checkpoint_.tensors.find(prefix_ + name);
        if (found == checkpoint_.tensors.end() || found->second.shape.size() != dimensions)
            throw Error(
                ErrorCode::not_supported,
                fmt::format("the checkpoint has no {}-dimensional tensor {}{}", dimensions, prefix_, name),
                "give the model's config.json; it names the family", {checkpoint_.path.string(), ""});
        return found->second.shape[dimension];
    }

    /// One more than the largest N of "`list`.N.…".
    std::uint64_t layers(const std::string& list) const {
        std::uint64_t count = 0;
        const std::string start = prefix_ + list + ".";
        for (const auto& [name, tensor] : checkpoint_.tensors) {
            if (!name.starts_with(start)) continue;
            std::uint64_t layer = 0;
            const char* digits = name.data() + start.size();
            const auto [end, error] = std::from_chars(digits, name.data() + name.size(), layer);
            if (error == std::errc{} && end != digits && *end == '.') count = std::max(count, layer + 1);
        }
        return count;
    }

    bool has_output_layer() const { return checkpoint_.tensors.contains("lm_head.weight"); }

private:
    const CheckpointHeader& checkpoint_;
    std::string prefix_;
};

/// Shapes tell the widths of q and k, not into how many heads they divide. The families' habit: 128 a head
/// from a hidden size of 2560 on, 64 below.
std::uint64_t assumed_head_dim(std::uint64_t hidden, std::uint64_t query, std::uint64_t key_value) {
    std::uint64_t head_dim = hidden >= 2560 ? 128 : 64;
    while (head_dim > 1 && (query % head_dim != 0 || key_value % head_dim != 0)) head_dim /= 2;
    return head_dim;
}

json infer_llama(const Shapes& shapes) {
    const std::string layer = "layers.0.";
    const std::uint64_t hidden = shapes.size("embed_tokens.weight", 1);
    const std::uint64_t query = shapes.size(layer + "self_attn.q_proj.weight", 0),
                        key_value = shapes.size(layer + "self_attn.k_proj.weight", 0);
    const bool has_norms = shapes.has(layer + "self_attn.q_norm.weight");
    const bool bias = shapes.has(layer + "self_attn.q_proj.bias"),
               output_bias = shapes.has(layer + "self_attn.o_proj.bias");
    json notes = json::array();
    std::uint64_t head_dim = assumed_head_dim(hidden, query, key_value);
    if (has_norms)
        head_dim = shapes.size(layer + "self_attn.q_norm.weight", 0, 1);
    else
        notes.push_back(
            fmt::format("the checkpoint does not say how large a head is: {} is assumed, so {} heads and {} "
                        "key/value heads",
                        head_dim, query / head_dim, key_value / head_dim));
    notes.push_back("the checkpoint does not say how long sequences may be: 4096 tokens are assumed");
    json config = {{"model_type", has_norms              ? "qwen3"
                                  : bias && !output_bias ? "qwen2"
                                                         : "llama"},
                   {"vocab_size", shapes.size("embed_tokens.weight", 0)},
                   {"hidden_size", hidden},
                   {"intermediate_size", shapes.size(layer + "mlp.up_proj.weight", 0)},
                   {"num_hidden_layers", shapes.layers("layers")},
                   {"num_attention_heads", query / head_dim},
                   {"num_key_value_heads", key_value / head_dim},
                   {"head_dim", head_dim},
                   {"max_position_embeddings", 4096},
                   {"attention_bias", bias},
                   {"mlp_bias", shapes.has(layer + "mlp.up_proj.bias")},
                   {"tie_word_embeddings", !shapes.has_output_layer()},
                   {"notes", std::move(notes)}};
    return config;
}

json infer_gpt2(const Shapes& shapes) {
    const std::uint64_t hidden = shapes.size("wte.weight", 1);
    const std::uint64_t head_dim = assumed_head_dim(0, hidden, hidden);  // 64 in every GPT-2
    return {{"model_type", "gpt2"},
            {"vocab_size", shapes.size("wte.weight", 0)},
            {"n_embd", hidden},
            {"n_positions", shapes.size("wpe.weight", 0)},
            {"n_inner", shapes.size("h.0.mlp.c_fc.weight", 1)},
            {"n_layer", shapes.layers("h")},
            {"n_head", hidden / head_dim},
            {"tie_word_embeddings", !shapes.has_output_layer()},
            {"notes",
             {fmt::format("the checkpoint does not say how large a head is: {} is assumed, so {} heads",
                          head_dim, hidden / head_dim)}}};
}

}  // namespace

json infer_config(const CheckpointHeader& checkpoint) {
    for (const char* prefix : {"model.", ""}) {
        const Shapes shapes(checkpoint, prefix);
        if (shapes.has("embed_tokens.weight")) return infer_llama(shapes);
    }
    for (const char* prefix : {"transformer.", ""}) {
        const Shapes shapes(checkpoint, prefix);
        if (shapes.has("wte.weight")) return infer_gpt2(shapes);
    }
    const std::string first = checkpoint.tensors.empty() ? "nothing" : checkpoint.tensors.begin()->first;
    throw Error(
        ErrorCode::not_supported,
        fmt::format(
            "the checkpoint's names are neither Llama's nor GPT-2's nor a plain stack's: it begins with {}",
            first),
        "give the model's config.json; it names the family", {checkpoint.path.string(), ""});
}

}  // namespace zeroplan
