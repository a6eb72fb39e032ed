#pragma once
#include "zeroplan/build_model.hpp"

namespace zeroplan {

/// Module names of a family; everything else is the same decoder.
struct DecoderNames {
    std::string embedding, positions;  ///< "embed_tokens", "wpe"
    std::string layers;                ///< "layers" or "h"
    std::string query, key, value, packed_qkv, attention_output, query_norm, key_norm;
    std::string gate, up, down;  ///< up and down alone for an ungated MLP
    std::string attention_input_norm, mlp_input_norm, final_norm;
    bool fp32_softmax = false;  ///< eager kernels compute the softmax of attention in fp32
    bool norms_last = false;    ///< the layer registers its norms behind its linears
    bool transposed = false;    ///< linear weights are stored [in, out]
};

/// Embedding, layers and head of a pre-norm decoder. Throws Error{invalid_input} for a word it doesn't know.
ModelSpec build_decoder(const DecoderConfig& config, const DecoderNames& names,
                        const LoweringOptions& options);

}  // namespace zeroplan
