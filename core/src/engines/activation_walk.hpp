#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "engines/activation_offload.hpp"
#include "engines/operator_issue.hpp"
#include "engines/program_builder.hpp"
#include "engines/recompute_policy.hpp"
#include "engines/tensor_instances.hpp"
#include "engines/walk_hooks.hpp"
#include "zeroplan/model_spec.hpp"
#include "zeroplan/training_config.hpp"

namespace zeroplan {

inline bool is_loss(OperatorKind kind) {
    return kind == OperatorKind::cross_entropy || kind == OperatorKind::mean_squared_error;
}

/// Emits the compute operations of one micro-batch, block by block, with the allocations that automatic
/// differentiation causes: a tensor lives from the operator that makes it to the last operator, forward or
/// backward, that reads it. Gradients of activations are summed in place where a tensor has several users.
///
/// The engine says where parameters and gradients are: that is what ZeRO stages change.
class ActivationWalk {
public:
    using Hooks = WalkHooks;

    /// How gradients of a tensor with several users are summed.
    enum class GradientSums : std::uint8_t {
        in_place,  ///< kernels add to what is there
        fresh      ///< every user makes a gradient of its own, which is then added and freed (torch.autograd)
    };

    ActivationWalk(const ModelSpec& model, const TrainingConfig& training, ProgramBuilder& builder,
                   std::vector<std::uint32_t> unit_of_parameter, BufferId workspace,
                   GradientSums sums = GradientSums::in_place);

    /// Allocates and loads the batch; call before the first forward.
    void begin_micro_batch() {
        begin_chunk(0, static_cast<std::uint32_t>(model_.blocks.size() - 1), no_buffer);
    }
    /// The same for blocks [first, last] alone, a pipeline stage's chunk. `input` is the received input,
    /// which stays the caller's; no_buffer: the chunk starts from a batch.
    void begin_chunk(std::uint32_t first, std::uint32_t last, BufferId input);
    /// What the chunk hands to the next stage, the caller's to free; no_buffer if it ended with a loss.
    BufferId output() const { return output_; }
    /// The gradient of output(), received from the next stage; it stays the caller's.
    void receive_gradient(BufferId gradient);
    /// The gradient of the received input once the first block's backward has run, the caller's to free.
    BufferId input_gradient() const {
        return incoming_gradient_ == no_instance ? no_buffer : live_.buffer(incoming_gradient_);
    }
    /// Recompute as torch.utils.checkpoint's reentrant form does it: the output computed again and the
    /// gradient that came in stay until the block's backward has ended.
    void use_reentrant_checkpoints() { reentrant_checkpoints_ = true; }

    /// What runs again alone in backward, by block kind, in place of what training.recompute says.
    void recompute_segments(std::vector<RecomputeSegments> segments) {
        policy_.segments = std::move(segments);
    }

    /// Offloaded activations hold up the stream that computes (ActivationOffload::block_on_copies).
    void block_on_copies(std::uint64_t parts) { offload_.block_on_copies(parts); }

    /// Between forward and backward a rank keeps one of `parts` of a checkpointed block's input, and gathers
    /// it again. source: deepspeed/runtime/activation_checkpointing/checkpointing.py (partition_activations)
    void partition_checkpoints(std::uint64_t parts) { parts_ = parts; }

    void forward(std::uint32_t block, const Hooks& hooks, std::vector<OperationId> waits);
    /// `accumulate_after_first`: gradients are summed over micro-batches where they are produced.
    void backward(std::uint32_t block, const Hooks& hooks, std::vector<OperationId> waits,
                  bool accumulate_after_first);

private:
    struct FreshGradient {
        InstanceId fresh, sum;
    };
    using Instances = std::vector<InstanceId>;  ///< by tensor of one block
    using Counts = std::vector<std::uint32_t>;  ///< by tensor of one block

    const BlockKind& kind_of(std::uint32_t block) const {
        return model_.block_kinds[model_.blocks[block].kind];
    }
    bool checkpoints(std::uint32_t block) const { return policy_.checkpointed[block]; }
    bool is_kept(std::uint32_t block, std::uint32_t tensor) const {
        return policy_.kept[model_.blocks[block].kind][tensor];
    }
    const RecomputeSegments& segments_of(std::uint32_t block) const {
        return policy_.segments[model_.blocks[block].kind];
    }
    /// The segment that makes the tensor again; none: it is kept, or never read again.
    std::optional<std::size_t> segment_of(std::uint32_t block, std::uint32_t tensor) const;
    bool is_dropped(std::uint32_t block, std::uint32_t tensor) const {
        return segment_of(block, tensor).has_value();
    }
    bool runs_again(std::uint32_t block, std::uint32_t op) const {
        return policy_.wanted[model_.blocks[block].kind][op];
    }

    void load_batch(std::uint32_t first, std::uint32_t last, BufferId input);
    /// A block that starts from a batch of its own: what ran before it becomes the context that it and later
    /// blocks read (an encoder's output), and stays until the last of them has read it.
    void start_from_batch(std::uint32_t block);
    InstanceId make(std::uint32_t block, std::uint32_t tensor, BufferRole role, std::uint32_t users);

    /// How often the tensors of a block will be read: by forward and, if `keep`, by backward.
    Counts future_users(std::uint32_t block, bool keep) const;
    /// Holds what a block gets from outside for as often as it reads it: its input, the context, the target.
    void use_inputs(std::uint32_t block, const Counts& users);
    void run_forward(std::uint32_t block, ComputePhase phase, const Counts& users, const Hooks& hooks);
    void run_forward_operator(std::uint32_t block, std::uint32_t op, ComputePhase phase, const Counts& users,
                              const Hooks& hooks);
    /// What the block keeps for backward goes to the host, and comes back.
    void send_to_host(std::uint32_t block);
    void fetch_from_host(std::uint32_t block);
    bool partitions(std::uint32_t block) const {
        return parts_ > 1 && checkpoints(block) && tensors_[block][0] != batch_;
    }
    void make_part(std::uint32_t block);
    void gather_input(std::uint32_t block);
    /// `holds_output`: its output stays until the block's backward has ended.
    void recompute(std::uint32_t block, const Hooks& hooks, bool holds_output);
    void recompute_block(std::uint32_t block, const Hooks& hooks);
    /// Unless it has run again in this backward; what it reads of another segment runs again before it.
    void recompute_segment(std::uint32_t block, std::size_t segment, const Hooks& hooks);
    void run_backward(std::uint32_t block, const Hooks& hooks, bool accumulate_after_first);
    void run_backward_operator(std::uint32_t block, std::uint32_t op, Instances& gradients,
                               const Hooks& hooks, bool accumulate_after_first);
    void issue_backward(std::uint32_t block, Compute compute, Instances& gradients, const Hooks& hooks);
    /// Returns fresh gradients that must be added to what is there once the operator has run.
    std::vector<FreshGradient> add_input_gradients(std::uint32_t block, const Operator& op,
                                                   Instances& gradients, Compute& compute);
    InstanceId make_gradient(std::uint32_t block, std::uint32_t tensor) {
        return make(block, tensor, BufferRole::activation_gradient, 1);
    }
    /// The gradient of an input that no other operator has given one yet.
    InstanceId first_gradient(std::uint32_t block, const Operator& op, std::uint32_t input,
                              const Instances& gradients);
    /// The operator's parameters as arguments, those of one unit once, where `place` has a buffer for it.
    void add_units(std::uint32_t block, const Operator& op, ArgumentRole role,
                   const std::function<BufferId(std::uint32_t unit)>& place, Compute& compute) const;

    const ModelSpec& model_;
    const TrainingConfig& training_;
    ProgramBuilder& builder_;
    std::vector<std::uint32_t> unit_of_parameter_;
    GradientSums sums_;
    RecomputePolicy policy_;
    std::vector<bool> ran_again_;  ///< by segment of the block whose backward runs
    OperatorIssue issue_;
    TensorInstances live_;
    ActivationOffload offload_;
    std::vector<Instances> tensors_;  ///< by block
    InstanceId batch_ = no_instance, labels_ = no_instance;
    InstanceId handed_over_ = no_instance;  ///< output of the block that ran last
    InstanceId context_ = no_instance, context_gradient_ = no_instance;
    InstanceId incoming_gradient_ = no_instance;  ///< of the output of the block whose backward is next
    std::uint32_t last_block_ = 0;                ///< of the chunk
    BufferId output_ = no_buffer;
    bool reentrant_checkpoints_ = false;
    std::uint64_t parts_ = 1;              ///< of a checkpoint: the ranks that share it
    std::vector<BufferId> part_of_input_;  ///< by block
};

}  // namespace zeroplan
