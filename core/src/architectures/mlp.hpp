#pragma once
#include <cstdint>
#include <string>

#include "architectures/block_builder.hpp"
#include "architectures/decoder_names.hpp"

namespace zeroplan {

/// "swiglu": silu, gated.
struct MlpKind {
    ActivationFunction function;
    bool gated;
};
/// Throws Error{invalid_input} for a word it doesn't know.
MlpKind mlp_kind(const std::string& word);

/// A layer's dense MLP: up (and gate, beside it or packed with it), activation and down.
class MlpLayer {
public:
    using TensorId = BlockBuilder::TensorId;

    MlpLayer(BlockBuilder& block, const DecoderConfig& config, const DecoderNames& names,
             const LoweringOptions& options);

    void declare();
    TensorId write(TensorId x);

private:
    using Parameters = std::vector<BlockBuilder::ParameterId>;

    Parameters linear(const std::string& module, std::uint64_t in, std::uint64_t out);
    TensorId inside(TensorId x);
    TensorId gated(TensorId x);
    TensorId packed_gated(TensorId packed);
    bool writes_activation() const;

    BlockBuilder& block_;
    const DecoderConfig& config_;
    const DecoderNames& names_;
    const LoweringOptions& options_;
    MlpKind kind_;
    bool fused_;
    std::uint64_t hidden_, width_;
    Parameters gate_, up_, down_;
};

}  // namespace zeroplan
