#pragma once
#include <optional>
#include <vector>

#include "engines/megatron_fsdp_layout.hpp"
#include "engines/megatron_fsdp_plan.hpp"
#include "engines/megatron_model.hpp"
#include "engines/program_builder.hpp"

namespace zeroplan {

/// A bucket and the buffers that hold its parameters, gradients and states.
struct FsdpBuffers {
    FsdpBucket layout;
    std::uint32_t owner = 0;               ///< unit of the plan's layout
    std::uint64_t rank = 0;                ///< of the bucket's group, that the program stands for
    std::vector<FsdpPiece> pieces;         ///< what that rank owns of it
    BufferId weights = no_buffer;          ///< whole, or the own slice; stage 0: the first parameter
    BufferId gathered = no_buffer;         ///< where operators read the values
    BufferId gradients = no_buffer;        ///< whole, or the own slice
    BufferId gradient_bucket = no_buffer;  ///< where operators leave gradients that will be sharded
    BufferId master = no_buffer, momentum = no_buffer, variance = no_buffer;
    std::vector<BufferId> main_gradients;

    std::uint64_t slice() const { return layout.numel / layout.shards; }
    std::uint64_t owned() const;
};

/// Buckets of one model chunk, which has pipelines of its own.
using FsdpChunk = std::vector<FsdpBuffers>;

/// Parameters, gradients, master weights and optimizer states of one pipeline stage.
/// source: megatron/core/distributed/fsdp/src/megatron_fsdp/param_and_grad_buffer.py (ParamAndGradBuffer).
class MegatronFsdpState {
public:
    MegatronFsdpState(const StageModel& stage, const MegatronFsdpPlan& plan);

    /// Units of the layout: every parameter, then every bucket.
    ShardLayout layout() const;
    const ModelSpec& model() const { return model_; }
    const MegatronFsdpPlan& plan() const { return plan_; }
    /// Only a slice of the parameters, or of the gradients, stays: a group of one rank shares nothing.
    bool shards_parameters(const FsdpBuffers& bucket) const {
        return plan_.shards_parameters && bucket.layout.shards > 1;
    }
    bool shards_gradients(const FsdpBuffers& bucket) const {
        return plan_.shards_gradients && bucket.layout.shards > 1;
    }
    std::vector<FsdpChunk>& chunks() { return chunks_; }
    FsdpBuffers& bucket_of(std::uint32_t parameter) {
        const auto [chunk, bucket] = place_of_[parameter];
        return chunks_[chunk][bucket];
    }

    /// Of bucket_of(parameter), in its chunk.
    std::size_t bucket_index(std::uint32_t parameter) const { return place_of_[parameter].second; }

    /// The module is on the device whole first; then one bucket after another moves into its buffer.
    void load(ProgramBuilder& builder);
    void initialise_optimizer(ProgramBuilder& builder);
    /// Copies of the gradients in the master's dtype, which live from the optimizer's step to the next step.
    void allocate_main_gradients(ProgramBuilder& builder);
    void free_main_gradients(ProgramBuilder& builder);
    /// The gradient that the optimizer reads of a tied embedding whose other copy is on another stage: the
    /// sum over both.
    void reduce_tied_copy(ProgramBuilder& builder) const;
    void step_optimizer(ProgramBuilder& builder);

    /// The parameter's values as operators read them; no_buffer while they are not gathered.
    BufferId parameter(std::uint32_t index) const;
    Buffer buffer(const FsdpBuffers& bucket, BufferRole role, Category category, DType dtype,
                  std::uint64_t elements) const;
    /// Of the collectives over the ranks that share the bucket.
    GroupKind group_of(const FsdpBuffers& bucket) const;

private:
    void load_bucket(ProgramBuilder& builder, FsdpBuffers& bucket);
    void allocate_gradients(ProgramBuilder& builder);
    void choose_ranks();
    Buffer of_piece(const FsdpPiece& piece, BufferRole role, Category category, DType dtype) const;

    const ModelSpec& model_;
    MegatronFsdpPlan plan_;
    std::optional<std::uint32_t> tied_copy_;
    std::vector<FsdpChunk> chunks_;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> place_of_;  ///< by parameter: chunk and bucket
    std::vector<BufferId> parameters_;                               ///< of the module, until they move
};

}  // namespace zeroplan
