#pragma once
#include "architectures/block_builder.hpp"
#include "architectures/decoder_names.hpp"

namespace zeroplan {

/// A layer's mixture of experts as Hugging Face's classes write it: a router, routed experts in two stacked
/// tensors, and shared experts beside them.
class ExpertLayer {
public:
    using TensorId = BlockBuilder::TensorId;

    ExpertLayer(BlockBuilder& block, const ExpertConfig& config, const DecoderNames& names,
                std::uint64_t hidden, ActivationFunction function, bool fused);

    void declare();
    TensorId write(TensorId x);

private:
    using Parameters = std::vector<BlockBuilder::ParameterId>;

    void declare_router();
    void declare_routed();
    void declare_shared();
    Parameters stacked(const std::string& name, std::uint64_t in, std::uint64_t out);
    TensorId route(TensorId x);
    TensorId permuted(TensorId x, TensorId weights);
    TensorId activated(TensorId gate_up);
    TensorId combined(TensorId down, TensorId weights);
    TensorId routed_experts(TensorId x, TensorId weights);
    TensorId shared_experts(TensorId x);
    TensorId grouped_linear(const std::string& name, TensorId x, std::uint64_t in, std::uint64_t out,
                            Parameters weights);

    BlockBuilder& block_;
    const ExpertConfig& config_;
    std::uint64_t hidden_;
    ActivationFunction function_;
    bool fused_;
    std::string router_name_, routed_name_, shared_name_;  ///< of modules
    bool routed_first_;
    Parameters router_, gate_up_, down_, shared_gate_, shared_up_, shared_down_, shared_mix_;
};

}  // namespace zeroplan
