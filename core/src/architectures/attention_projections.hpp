#pragma once
#include <cstdint>
#include <optional>

#include "architectures/attention.hpp"
#include "architectures/decoder_names.hpp"

namespace zeroplan {

/// Query, key and value of a layer's own tokens, from linears of their own or a packed one, with the norms of
/// heads and the positions that the configuration asks for.
class AttentionProjections {
public:
    using TensorId = BlockBuilder::TensorId;
    using Parameters = std::vector<BlockBuilder::ParameterId>;

    /// How one layer differs from others of its stack.
    struct Layer {
        std::uint64_t relative_buckets = 0;  ///< rows of the table of relative positions that it holds
        bool rotates = true;                 ///< queries and keys, in a model with rotary embedding
    };
    AttentionProjections(BlockBuilder& block, const DecoderConfig& config, const DecoderNames& names,
                         const LoweringOptions& options, Layer layer);

    const AttentionShape& shape() const { return shape_; }
    void declare();
    /// Writes the bias that all layers of the stack add to their scores, if the layer has the table of it.
    void write_relative_positions();
    /// The attention's output, projected.
    TensorId write(TensorId x, ScoreOptions scores);

private:
    void declare(Projection projection);
    void declare_output();
    Parameters linear(const std::string& module, std::uint64_t out, bool bias);
    std::string relative_name() const;
    std::uint64_t query_norm_width() const;
    std::uint64_t key_norm_width() const;
    Parameters head_norm(const std::string& module, std::uint64_t heads, std::uint64_t width);
    QueryKeyValue project(TensorId x);
    void clip(QueryKeyValue& qkv);
    void norm_heads(QueryKeyValue& qkv);
    void place_heads(QueryKeyValue& qkv);

    BlockBuilder& block_;
    const DecoderConfig& config_;
    const DecoderNames& names_;
    const LoweringOptions& options_;
    Layer layer_;
    AttentionShape shape_;
    NormKernel norm_;
    Parameters query_, key_, value_, packed_, output_, query_norm_, key_norm_, relative_positions_, sinks_;
    std::optional<TensorId> position_bias_;
};

}  // namespace zeroplan
