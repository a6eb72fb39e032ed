#pragma once
#include <cstdint>
#include <string>

#include "architectures/decoder_names.hpp"
#include "zeroplan/build_model.hpp"

namespace zeroplan {

/// An encoder over the patches of one image a sequence.
struct VisionConfig {
    DecoderConfig layers;  ///< sizes, norms and biases of its layers
    DecoderNames names;
    std::uint64_t image_size = 0, patch_size = 0, channels = 3;
    std::uint64_t frames = 0;  ///< of one patch: a still image is repeated (Qwen 2 VL); 0: patches are flat
    std::string patch_projection, class_token, mask_token, positions, first_norm, last_norm;  ///< "": none
    bool patch_bias = true;
    bool flat_positions = true;  ///< a table [tokens, hidden], else a tensor [1, tokens, hidden]
    bool tokens_first = false;   ///< class token (and positions) are registered ahead of the projection
    std::uint64_t patches() const { return (image_size / patch_size) * (image_size / patch_size); }
    std::uint64_t pixels() const { return channels * patch_size * patch_size * (frames == 0 ? 1 : frames); }
    std::uint64_t tokens() const { return patches() + (class_token.empty() ? 0 : 1); }
};

/// What makes a language model's tokens out of an encoder's.
enum class Projector : std::uint8_t {
    two_linears,    ///< LLaVA: without the class token
    pooled_linear,  ///< Gemma 3: patches are averaged, normed and projected
    merger          ///< Qwen 2 VL: normed patches that lie together go through two linears as one token
};

/// Appends patch embedding, layers and last norm. `prefix` stands before every name.
void append_vision(ModelSpec& model, const VisionConfig& config, const std::string& prefix,
                   const LoweringOptions& options);

/// A classifier over an encoder: `features` times hidden wide.
ModelSpec build_image_classifier(const VisionConfig& config, std::uint64_t features, std::uint64_t labels,
                                 const LoweringOptions& options);

/// Encoder, projector and a decoder that reads `image_tokens` of its tokens from them.
struct ImageTextConfig {
    VisionConfig vision;
    DecoderConfig text;
    Projector projector = Projector::two_linears;
    std::uint64_t image_tokens = 0;
    std::string vision_prefix = "vision_tower.vision_model.", projector_prefix = "multi_modal_projector.",
                text_prefix = "language_model.model.", head_prefix = "language_model.";
};
ModelSpec build_image_text(const ImageTextConfig& config, const LoweringOptions& options);

}  // namespace zeroplan
