#pragma once
#include "engines/deepspeed_rank.hpp"

namespace zeroplan {

/// BF16_Optimizer: bf16 parameters in one flat tensor, gradients accumulated in a full flat tensor of the
/// accumulation dtype on every rank, master weights and states of the own partition.
/// source: deepspeed/runtime/bf16_optimizer.py
class DeepSpeedBf16 {
public:
    DeepSpeedBf16(const DeepSpeedRank& rank, ProgramBuilder& builder);

    void load() { parameters_.load(); }
    void init();
    BufferId values(std::uint32_t parameter) const { return parameters_.values(parameter); }
    void begin_backward(bool) {}
    void gradient_ready(std::uint32_t parameter, BufferId gradient);
    void end_backward(bool last);
    OperationId step();
    const std::vector<BufferId>& states_of_first_step() const { return lazy_states_; }

private:
    /// In a pipeline low-precision gradients are zeroed and kept (clear_lp_grads = false), not freed.
    bool keeps_low_precision_gradients() const {
        return rank_.pipelined && !rank_.options.immediate_grad_update;
    }
    void add_to_accumulated(std::uint32_t parameter, BufferId gradient);

    const DeepSpeedRank& rank_;
    ProgramBuilder& builder_;
    DeepSpeedParameters parameters_;
    BufferId accumulated_ = no_buffer, master_ = no_buffer;
    std::vector<BufferId> states_, lazy_states_;
    std::vector<BufferId> gradients_;  ///< by parameter, low precision
};

}  // namespace zeroplan
