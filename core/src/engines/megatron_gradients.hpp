#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "engines/megatron_stage.hpp"
#include "engines/megatron_state.hpp"
#include "engines/pending_sums.hpp"
#include "engines/program_builder.hpp"

namespace zeroplan {

/// Where an engine keeps a parameter's values and the sum of its gradients; the sum's place may be made by
/// asking for it.
struct ParameterPlaces {
    std::function<BufferId(std::uint32_t parameter)> values, gradients;
};

/// Gradients of parameters as backward makes them, until they are in the gradient buffers.
/// source: megatron/core/distributed, megatron/core/tensor_parallel/layers.py.
class MegatronGradients {
public:
    MegatronGradients(const MegatronStage& stage, ParameterPlaces places, ProgramBuilder& builder);

    /// Transformer Engine hands autograd one never-written gradient a weight shape, which it keeps, where the
    /// product itself adds to the gradient buffer. source: transformer_engine get_dummy_wgrad.
    void allocate_dummies();

    /// Arguments of an operator: no_buffer but for the first weight of a grouped product.
    BufferId parameter_argument(std::uint32_t parameter) const;
    BufferId gradient_argument(std::uint32_t parameter);
    /// Adds to the buffers what the last operator has made beside them.
    void add_up() { pending_.add_up(builder_); }

    /// Megatron-LM 2021: main_grad referred to the last step's gradients until now. This step's are copied
    /// into one flat tensor, all-reduced there and copied back; then each is widened for the optimizer before
    /// the last step's copy goes.
    void reduce_flattened(MegatronState& state);

private:
    void find_fused(const Block& block, const Operator& op);
    BufferId allocate_gradient(std::uint32_t parameter);
    BufferId gradient_of(std::uint32_t parameter);
    void all_reduce(std::uint64_t elements);

    const MegatronStage& stage_;
    ParameterPlaces places_;
    ProgramBuilder& builder_;
    /// By parameter: the matrix product itself adds its gradient to the buffer.
    std::vector<bool> fused_;
    /// By parameter: it counts as one argument with the first weight of its grouped product.
    std::vector<bool> grouped_;
    std::vector<BufferId> step_gradients_;  ///< by parameter, in Megatron-LM 2021
    PendingSums pending_;
};

}  // namespace zeroplan
