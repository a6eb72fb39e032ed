#pragma once
#include <cstdint>

#include "engines/megatron_model.hpp"
#include "engines/megatron_options.hpp"
#include "engines/program_builder.hpp"
#include "zeroplan/scenario.hpp"

namespace zeroplan {

/// Index of a model chunk of a stage.
using Chunk = std::uint32_t;

/// One rank of a pipeline stage: what it holds and what the scenario asks of it.
class MegatronStage {
public:
    MegatronStage(const Scenario& scenario, const MegatronOptions& options, std::uint32_t number);

    const Scenario& scenario() const { return scenario_; }
    const MegatronOptions& options() const { return options_; }
    /// The scenario's, with the tokens of one rank.
    const TrainingConfig& training() const { return training_; }
    std::uint32_t number() const { return number_; }
    const StageModel& parts() const { return parts_; }
    const ModelSpec& model() const { return parts_.model; }

    bool is_core() const { return options_.generation == MegatronGeneration::core; }
    Chunk chunk_count() const { return static_cast<Chunk>(parts_.chunks.size()); }
    /// Several chunks a stage.
    bool is_interleaved() const { return chunk_count() > 1; }
    const ChunkBlocks& blocks(Chunk chunk) const { return parts_.chunks[chunk]; }
    bool has_embedding(Chunk chunk) const { return number_ == 0 && chunk == 0; }
    bool has_head(Chunk chunk) const {
        return number_ + 1 == training_.pipeline_parallel && chunk + 1 == chunk_count();
    }
    std::uint32_t virtual_stage(Chunk chunk) const {
        return static_cast<std::uint32_t>(chunk * training_.pipeline_parallel + number_);
    }

    const TensorSpec& tensor(std::uint32_t block, std::uint32_t index) const {
        return model().block_kinds[model().blocks[block].kind].tensors[index];
    }
    std::uint32_t output_of(std::uint32_t block) const {
        return model().block_kinds[model().blocks[block].kind].output;
    }
    std::uint64_t numel(const TensorSpec& spec) const {
        return elements(spec.extent, training_.micro_batch_size, training_.sequence_length);
    }

    /// What a chunk receives and sends, and the gradients that go the other way.
    BufferId allocate_input(ProgramBuilder& builder, Chunk chunk) const;
    BufferId allocate_input_gradient(ProgramBuilder& builder, Chunk chunk) const;
    BufferId allocate_output_gradient(ProgramBuilder& builder, Chunk chunk) const;

private:
    BufferId allocate(ProgramBuilder& builder, std::uint32_t block, std::uint32_t index,
                      BufferRole role) const;

    const Scenario& scenario_;
    const MegatronOptions& options_;
    TrainingConfig training_;
    std::uint32_t number_;
    StageModel parts_;
};

}  // namespace zeroplan
