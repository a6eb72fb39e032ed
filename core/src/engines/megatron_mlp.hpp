#pragma once
#include "engines/megatron_rank_block.hpp"

namespace zeroplan {

/// The MLP of one layer on one rank: dense, or routed experts with shared ones beside them.
class RankMlp {
public:
    RankMlp(RankBlock& rank, bool experts);

    /// Declares the parameters in Megatron's registration order.
    void declare(const std::string& prefix);
    /// From the normed input to what is added to the residual.
    RankBlock::TensorId write(RankBlock::TensorId x);

private:
    using TensorId = RankBlock::TensorId;
    using Parameters = RankBlock::Parameters;

    struct DenseParameters {
        Parameters fc1, fc2;
    };
    DenseParameters declare_dense(const std::string& prefix, std::uint64_t ffn, bool bias);
    TensorId dense(const std::string& name, TensorId x, std::uint64_t ffn, const DenseParameters& parameters);
    /// Tokens change ranks: all-to-all over the expert-parallel group, then over the ranks that split an
    /// expert. Forward of `dispatch` is backward of combine.
    void exchange_tokens(bool dispatch);
    TensorId experts(TensorId x);
    TensorId grouped_linear(const std::string& name, TensorId x, std::uint64_t in, std::uint64_t out,
                            const Parameters& weights);

    RankBlock& rank_;
    const MegatronContext& c_;
    const DecoderConfig& d_;
    bool has_experts_, gated_;
    ActivationFunction function_;
    DenseParameters dense_, shared_;
    Parameters router_, expert_fc1_, expert_fc2_;
};

}  // namespace zeroplan
