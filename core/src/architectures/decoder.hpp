#pragma once
#include "architectures/decoder_names.hpp"
#include "zeroplan/build_model.hpp"

namespace zeroplan {

/// Embedding, layers and head of a decoder. Throws Error{invalid_input} for a word it doesn't know.
ModelSpec build_decoder(const DecoderConfig& config, const DecoderNames& names,
                        const LoweringOptions& options);

/// Appends the decoder to a model whose last block makes `image_tokens` of its tokens a sequence: the
/// embedding puts them among its own.
void append_decoder(ModelSpec& model, const DecoderConfig& config, const DecoderNames& names,
                    const LoweringOptions& options, std::uint64_t image_tokens);

}  // namespace zeroplan
