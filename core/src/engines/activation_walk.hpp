#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "engines/program_builder.hpp"
#include "zeroplan/model_spec.hpp"
#include "zeroplan/training_config.hpp"

namespace zeroplan {

/// Emits the compute operations of one micro-batch, block by block, with the allocations that automatic
/// differentiation causes: a tensor lives from the operator that makes it to the last operator, forward or
/// backward, that reads it. Gradients of activations are summed in place where a tensor has several users.
///
/// The engine says where parameters and gradients are: that is what ZeRO stages change.
class ActivationWalk {
public:
    /// What the engine adds while a block runs. `unit` is what the constructor's table gives for a parameter:
    /// a flat buffer's unit, or the parameter itself where every parameter is a tensor of its own.
    struct Hooks {
        std::function<BufferId(std::uint32_t unit)>
            parameters;  ///< where the values are; no_buffer: not an argument
        std::function<BufferId(std::uint32_t unit)> gradients;  ///< where backward writes; may allocate
        std::function<bool(std::uint32_t parameter)>
            accumulate;  ///< backward must add (second use of a tied weight)
        /// Optional: right before and after an operator is issued.
        std::function<void(ComputePhase, std::uint32_t block, const Operator&)> before, after;
        /// Optional: what the operator that is about to be issued has to wait for besides.
        std::function<std::vector<OperationId>()> waits;
    };

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
        return incoming_gradient_ == none ? no_buffer : instances_[incoming_gradient_].buffer;
    }
    /// Recompute as torch.utils.checkpoint's reentrant form does it: the output computed again and the
    /// gradient that came in stay until the block's backward has ended.
    void use_reentrant_checkpoints() { reentrant_checkpoints_ = true; }

    void forward(std::uint32_t block, const Hooks& hooks, std::vector<OperationId> waits);
    /// `accumulate_after_first`: gradients are summed over micro-batches where they are produced.
    void backward(std::uint32_t block, const Hooks& hooks, std::vector<OperationId> waits,
                  bool accumulate_after_first);

private:
    /// A live tensor; several names may share one (in-place operators, shared gradients). Freed with its last
    /// user.
    struct Instance {
        BufferId buffer = no_buffer;
        std::uint32_t users = 0;
        bool shared = false;  ///< somebody else reads it: sums must not go into it
        bool on_host = false;
    };
    using InstanceId = std::uint32_t;
    struct FreshGradient {
        InstanceId fresh, sum;
    };
    static constexpr InstanceId none = 0xffffffffU;
    using Instances = std::vector<InstanceId>;  ///< by tensor of one block
    using Counts = std::vector<std::uint32_t>;  ///< by tensor of one block

    const BlockKind& kind_of(std::uint32_t block) const {
        return model_.block_kinds[model_.blocks[block].kind];
    }
    /// The block runs again in backward: it keeps its input, and what `kept_` names.
    bool checkpoints(std::uint32_t block) const { return checkpointed_[block]; }
    bool is_kept(std::uint32_t block, std::uint32_t tensor) const {
        return kept_[model_.blocks[block].kind][tensor];
    }
    bool skipped_in_recompute(std::uint32_t block, std::uint32_t op) const;
    /// Selective recompute: the tensor comes out of the attention core, which runs again in backward.
    bool is_dropped(std::uint32_t block, std::uint32_t tensor) const {
        return dropped_[model_.blocks[block].kind][tensor];
    }

    InstanceId borrow(BufferId buffer);
    /// A block that starts from a batch of its own: what ran before it becomes the context that it and later
    /// blocks read (an encoder's output), and stays until the last of them has read it.
    void start_from_batch(std::uint32_t block);
    InstanceId make(std::uint32_t block, std::uint32_t tensor, BufferRole role, std::uint32_t users);
    void use(InstanceId id, std::uint32_t times = 1) { instances_[id].users += times; }
    void release(InstanceId id);

    /// How often the tensors of a block will be read: by forward and, if `keep`, by backward.
    Counts future_users(std::uint32_t block, bool keep) const;
    void run_forward(std::uint32_t block, ComputePhase phase, Counts users, const Hooks& hooks);
    void run_forward_operator(std::uint32_t block, std::uint32_t op, ComputePhase phase, const Counts& users,
                              const Hooks& hooks);
    /// What the block keeps for backward goes to the host, and comes back.
    void send_to_host(std::uint32_t block);
    void fetch_from_host(std::uint32_t block);
    void recompute_block(std::uint32_t block, const Hooks& hooks);
    void recompute_attention_core(std::uint32_t block, const Hooks& hooks);
    void run_backward_operator(std::uint32_t block, std::uint32_t op, Instances& gradients,
                               const Hooks& hooks, bool accumulate_after_first);
    /// Returns fresh gradients that must be added to what is there once the operator has run.
    std::vector<FreshGradient> add_input_gradients(std::uint32_t block, const Operator& op,
                                                   Instances& gradients, Compute& compute);
    void add_parameters(std::uint32_t block, const Operator& op, const Hooks& hooks, Compute& compute) const;
    void add_parameter_gradients(std::uint32_t block, const Operator& op, const Hooks& hooks,
                                 Compute& compute) const;
    /// Collectives of an operator at one moment: on the compute stream, or beside the operator.
    void emit_collectives(const Operator& op, CollectiveMoment moment);
    void emit_overlapped(const Operator& op, bool backward);
    Collective to_operation(const OperatorCollective& collective) const;
    /// Puts a compute operation on its stream with its temporaries around it; takes the pending waits along.
    void emit(Compute compute, const Operator& op, const Extent& workspace, const Hooks& hooks);

    const ModelSpec& model_;
    const TrainingConfig& training_;
    ProgramBuilder& builder_;
    std::vector<std::uint32_t> unit_of_parameter_;
    BufferId workspace_;
    GradientSums sums_;
    std::vector<bool> checkpointed_;          ///< by block
    std::vector<std::vector<bool>> dropped_;  ///< by block kind and tensor
    std::vector<std::vector<bool>> kept_;     ///< likewise: outlive a checkpointed block's forward
    std::vector<std::vector<bool>> wanted_;   ///< by block kind and operator: recompute has to run it
    std::vector<Instance> instances_;
    std::vector<Instances> tensors_;          ///< by block
    std::vector<OperationId> pending_waits_;  ///< of the next compute operation
    std::vector<OperationId> overlapped_;     ///< collectives that the next compute operation waits for
    std::uint32_t overlapped_in_ = 0;         ///< section of overlapped_
    InstanceId batch_ = none, labels_ = none;
    InstanceId handed_over_ = none;  ///< output of the block that ran last
    InstanceId context_ = none, context_gradient_ = none;
    InstanceId incoming_gradient_ = none;  ///< of the output of the block whose backward is next
    std::uint32_t last_block_ = 0;         ///< of the chunk
    BufferId output_ = no_buffer;
    bool reentrant_checkpoints_ = false;
};

}  // namespace zeroplan
