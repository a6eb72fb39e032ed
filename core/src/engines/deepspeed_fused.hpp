#pragma once
#include "engines/deepspeed_rank.hpp"

namespace zeroplan {

/// Stage 0: every rank has everything. 16 bit: FP16_Optimizer, whose parameters are one flat tensor with fp32
/// master weights beside it; fp32: the optimizer itself.
/// source: deepspeed/runtime/fp16/fused_optimizer.py; engine.py, buffered_allreduce_fallback
class DeepSpeedFused {
public:
    DeepSpeedFused(const DeepSpeedRank& rank, ProgramBuilder& builder, bool sixteen_bit);

    void load() { parameters_.load(); }
    void init();
    BufferId values(std::uint32_t parameter) const { return parameters_.values(parameter); }
    void begin_backward(bool) {}
    void gradient_ready(std::uint32_t parameter, BufferId gradient);
    void end_backward(bool last);
    /// Returns the position at which the first step makes its states.
    OperationId step();
    const std::vector<BufferId>& states_of_first_step() const { return lazy_states_; }

private:
    void all_reduce_in_buckets();
    void all_reduce(std::uint64_t elements);
    OperationId step_fp32_parameters();

    const DeepSpeedRank& rank_;
    ProgramBuilder& builder_;
    bool sixteen_bit_;
    DeepSpeedParameters parameters_;
    BufferId master_ = no_buffer;
    std::vector<BufferId> states_, lazy_states_;
    std::vector<BufferId> gradients_;  ///< by parameter
};

}  // namespace zeroplan
