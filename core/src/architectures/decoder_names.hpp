#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zeroplan {

/// What a layer registers, one after another. A norm of attention or MLP stands before it, or behind the
/// residual addition; an output norm stands behind the branch; a scale multiplies it (DINOv2).
enum class LayerPart : std::uint8_t {
    attention_norm,
    attention,
    attention_output_norm,
    attention_scale,
    cross_norm,
    cross_attention,
    mlp_norm,
    mlp,
    mlp_output_norm,
    mlp_scale
};

/// What an attention registers. A packed query, key and value stands where the first of the three does.
enum class Projection : std::uint8_t { query, key, value, output, head_norms };

/// Module names of a family, and in which order it registers them.
struct DecoderNames {
    std::string prefix;                ///< of all but the output layer: "model."
    std::string embedding, positions;  ///< "embed_tokens", "wpe"
    std::string embedding_norm;
    std::string project_in, project_out;  ///< of an embedding narrower than the model
    std::string layers;                   ///< "layers" or "h"
    std::string query, key, value, packed_qkv, attention_output, query_norm, key_norm;
    std::string gate, up, down;  ///< up and down alone for an ungated MLP
    std::string gated_up;        ///< up of a gated MLP, where it is called otherwise
    std::string packed_gate_up;
    std::string experts = "mlp.", router = "gate", shared_experts;  ///< modules; "": shared_expert(s)
    std::string sinks;                                              ///< whole name of the attention's sinks
    std::string cross_query, cross_key, cross_value, cross_output, cross_norm;  ///< attention to an encoder
    std::string attention_norm, mlp_norm, attention_output_norm, mlp_output_norm, final_norm;
    std::string attention_scale, mlp_scale;  ///< whole names
    std::string head = "lm_head";
    std::vector<LayerPart> parts{LayerPart::attention_norm, LayerPart::attention, LayerPart::mlp_norm,
                                 LayerPart::mlp};
    std::vector<Projection> projections{Projection::query, Projection::key, Projection::value,
                                        Projection::output, Projection::head_norms};
    bool fp32_softmax = false;          ///< eager kernels compute the softmax of attention in fp32
    bool tempers_queries = false;       ///< of layers without rope: scaled by their positions (Llama 4)
    bool drops_inside_mlp = false;      ///< a dropout behind the MLP's activation as well (T5)
    bool transposed = false;            ///< linear weights are stored [in, out]
    bool routed_experts_first = false;  ///< registered ahead of the router
    bool packs_qkv = false;             ///< the class has one linear for query, key and value
    bool final_norm_first = false;  ///< projections and final norm are registered ahead of the layers (OPT)
};

/// The names of one of the families that are built: "llama", "gpt2", "mpt", "bloom" …
const DecoderNames& decoder_names(std::string_view family);

}  // namespace zeroplan
