#pragma once
#include "architectures/block_builder.hpp"

namespace zeroplan {

/// A layer's mixture of experts as Hugging Face's classes write it: a router, routed experts in two stacked
/// tensors, and shared experts beside them.
class ExpertLayer {
public:
    using TensorId = BlockBuilder::TensorId;

    ExpertLayer(BlockBuilder& block, const ExpertConfig& config, std::uint64_t hidden,
                ActivationFunction function, bool fused)
        : block_(block), config_(config), hidden_(hidden), function_(function), fused_(fused) {}

    void declare();
    TensorId write(TensorId x);

private:
    using Parameters = std::vector<BlockBuilder::ParameterId>;

    TensorId route(TensorId x);
    TensorId routed_experts(TensorId x, TensorId weights);
    TensorId shared_experts(TensorId x);
    TensorId grouped_linear(const std::string& name, TensorId x, std::uint64_t in, std::uint64_t out,
                            Parameters weights);

    BlockBuilder& block_;
    const ExpertConfig& config_;
    std::uint64_t hidden_;
    ActivationFunction function_;
    bool fused_;
    Parameters router_, gate_up_, down_, shared_gate_, shared_up_, shared_down_, shared_mix_;
};

}  // namespace zeroplan
