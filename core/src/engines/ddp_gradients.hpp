#pragma once
#include <cstdint>
#include <vector>

#include "engines/ddp_buckets.hpp"
#include "engines/ddp_parameters.hpp"
#include "engines/program_builder.hpp"
#include "engines/torch_step.hpp"

namespace zeroplan {

/// Gradients, each a tensor of its own, and the reducer's buckets.
/// source: torch/csrc/distributed/c10d/reducer.cpp, torch/csrc/autograd/functions/accumulate_grad.h
class DdpGradients {
public:
    DdpGradients(const Scenario& scenario, const DdpParameters& parameters, TorchOptimizer& optimizer,
                 ProgramBuilder& builder);

    /// The reducer's buckets are as large as the gradients, and stay. Gradients that are summed over
    /// micro-batches live between them.
    void allocate_resident();
    /// `last`: of the step; its gradients are reduced.
    void begin_micro_batch(bool last);

    /// Where autograd puts the gradient of a parameter.
    BufferId gradient(std::uint32_t parameter);
    /// Keeps, adds up and reduces what the last operator has made.
    void keep_fresh();
    /// Another use of the parameter has its backward still to come.
    bool is_incomplete(std::uint32_t parameter) const {
        return uses_[parameter] > 1 && tensors_[parameter].contributions < uses_[parameter];
    }

    /// Steps all parameters with the reduced gradients, unless backward has; says where the step began.
    OperationId step();
    /// Frees what the next step makes anew.
    void free_after_step();

private:
    struct Tensors {
        BufferId gradient = no_buffer;
        std::uint32_t contributions = 0;  ///< of this backward
        std::size_t bucket = 0;
    };
    struct Fresh {
        std::uint32_t parameter;
        BufferId buffer;
    };

    bool accumulates() const { return training_.gradient_accumulation_steps > 1; }
    bool steps_in_backward() const {
        return training_.optimizer_implementation == OptimizerImplementation::in_backward && !reduces_;
    }
    BufferId allocate(DType dtype, std::uint32_t parameter) {
        return builder_.allocate(
            parameters_.buffer(BufferRole::gradients, Category::gradients, dtype, parameter));
    }
    void allocate_buckets();
    bool has_wrong_size(BufferId gradient) const;
    void keep(const Fresh& fresh);
    void add(const Fresh& fresh);
    void send_to_host(std::uint32_t parameter);
    void step_in_backward(std::uint32_t parameter);
    void reduce(DdpBucket& bucket);
    bool compresses() const {
        return bytes_per_element(training_.reduce_dtype) < bytes_per_element(training_.gradient_dtype);
    }
    BufferId compressed(const DdpBucket& bucket);
    void decompress(const DdpBucket& bucket, BufferId narrow);
    void copy_back();

    const ModelSpec& model_;
    const TrainingConfig& training_;
    const DdpParameters& parameters_;
    TorchOptimizer& optimizer_;
    ProgramBuilder& builder_;
    bool reduces_;
    std::vector<Tensors> tensors_;     ///< by parameter
    std::vector<std::uint32_t> uses_;  ///< by parameter: contributions to its gradient
    std::vector<DdpBucket> buckets_;
    std::vector<Fresh> fresh_;
    OperationId step_position_ = 0;
    bool last_ = false;
};

}  // namespace zeroplan
