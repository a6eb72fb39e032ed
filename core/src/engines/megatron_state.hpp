#pragma once
#include <optional>
#include <vector>

#include "engines/megatron_buffer.hpp"
#include "engines/megatron_model.hpp"
#include "engines/program_builder.hpp"
#include "zeroplan/plan.hpp"

namespace zeroplan {

/// How a run keeps parameters, gradients and optimizer states, resolved from the scenario.
struct MegatronStatePlan {
    bool distributed = false;         ///< distributed optimizer: states of the own share only
    std::uint64_t shards = 1;         ///< ranks that share one copy of the states
    std::uint64_t expert_shards = 1;  ///< the same for expert parameters
    DType parameters = DType::bf16, gradients = DType::fp32;
    std::optional<DType> master;           ///< nullopt: the parameters are the master
    std::optional<DType> main_gradients;   ///< copies of the gradients for the optimizer, made in the step
    std::vector<DType> states;             ///< one tensor each
    bool per_parameter_gradients = false;  ///< Megatron-LM 2021: no gradient buffer
    bool overlap_param_gather = false;     ///< parameters are gathered under the next step's forward
    /// --optimizer-offload-fraction: share of the optimizer that steps on the host.
    double offloaded = 0;
    MegatronBufferOptions buffer;
};

MegatronStatePlan megatron_state_plan(const Scenario& scenario, const MegatronOptions& options);

/// Parameters, gradient buffers, master weights and optimizer states of one stage: allocated in `load` and
/// `init` as Megatron does, one chunk's contiguous buffers after another.
class MegatronState {
public:
    MegatronState(const StageModel& stage, const MegatronStatePlan& plan, bool first_stage);

    /// Units of the layout: every parameter, then one parameter and gradient buffer a chunk (and one more for
    /// expert parameters).
    ShardLayout layout() const;

    void load(ProgramBuilder& builder);
    void initialise_optimizer(ProgramBuilder& builder);
    void allocate_main_gradients(ProgramBuilder& builder);
    void free_main_gradients(ProgramBuilder& builder);
    /// Each copy is made anew before the old one goes.
    void renew_main_gradients(ProgramBuilder& builder);

    BufferId parameter(std::uint32_t index) const { return parameters_[index]; }
    /// The chunk's gradient buffer; no_buffer in Megatron-LM 2021.
    BufferId gradient_buffer(std::uint32_t parameter) const {
        return buffers_[buffer_of_[parameter]].gradients;
    }
    const std::vector<BufferId>& kept_gradients() const { return kept_gradients_; }
    /// overlap_grad_reduce: the last micro-batch has left this gradient; full buckets are reduced.
    void gradient_ready(ProgramBuilder& builder, std::uint32_t parameter);
    /// overlap_param_gather: what the optimizer of the step before has updated.
    void gather_parameters(ProgramBuilder& builder);
    void append_step(ProgramBuilder& builder, const TrainingConfig& training);
    /// What the offloaded part of the optimizer keeps on the host.
    HostPhases host(const TrainingConfig& training) const;

private:
    struct Piece {
        std::uint32_t parameter = 0;
        std::uint64_t numel = 0;
        BufferId main_gradient = no_buffer;
        bool on_host = false;
    };
    struct ChunkBuffer {
        std::vector<std::uint32_t> members;  ///< parameters, registration order
        MegatronBuffer layout;
        std::uint64_t shards = 1;
        std::uint32_t unit = 0;
        BufferId parameters = no_buffer, gradients = no_buffer, master = no_buffer, momentum = no_buffer,
                 variance = no_buffer;
        std::uint64_t owned = 0, on_host = 0;  ///< elements; those stepped on the host are among the owned
        bool experts = false;
        std::uint64_t ready = 0, reduced = 0;  ///< elements, under overlap_grad_reduce
    };

    Buffer of_parameter(BufferRole role, Category category, DType dtype, std::uint32_t parameter,
                        std::uint64_t numel) const;
    void add_buffer(std::vector<std::uint32_t> members, std::uint64_t shards, bool bucketed, bool experts);
    GroupKind group_of(const ChunkBuffer& buffer) const;
    OperationId reduce(ProgramBuilder& builder, const ChunkBuffer& buffer, std::uint64_t elements) const;
    OperationId gather(ProgramBuilder& builder, const ChunkBuffer& buffer,
                       std::vector<OperationId> waits) const;
    void finish_gradients(ProgramBuilder& builder);
    OperationId step_on_device(ProgramBuilder& builder, const ChunkBuffer& buffer) const;
    void load_buffers(ProgramBuilder& builder, ChunkBuffer& buffer);
    std::vector<Piece> pieces_of(const ChunkBuffer& buffer) const;
    void choose_offloaded();
    std::vector<std::uint32_t> whole_parameters(bool on_host) const;
    std::vector<BufferId> clone_whole_parameters(ProgramBuilder& builder) const;
    void copy(ProgramBuilder& builder, const ChunkBuffer& buffer, CopyPath path) const;
    void step_on_host(ProgramBuilder& builder, const TrainingConfig& training) const;

    const ModelSpec& model_;
    MegatronStatePlan plan_;
    std::vector<ChunkBuffer> buffers_;
    std::optional<std::uint32_t> tied_copy_;
    std::vector<std::uint32_t> buffer_of_;  ///< by parameter
    std::vector<BufferId> parameters_;
    std::vector<std::vector<Piece>> pieces_;  ///< by buffer
    std::vector<BufferId> kept_gradients_;
};

}  // namespace zeroplan
