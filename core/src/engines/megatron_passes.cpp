#include "engines/megatron_passes.hpp"

#include <utility>

#include "engines/megatron_recompute.hpp"
#include "engines/torch_units.hpp"

namespace zeroplan {

MegatronPasses::MegatronPasses(const MegatronStage& stage, MegatronGradients& gradients,
                               ProgramBuilder& builder, BlockHooks blocks)
    : stage_(stage),
      gradients_(gradients),
      builder_(builder),
      blocks_(std::move(blocks)),
      hooks_{.parameters = [this](std::uint32_t p) { return gradients_.parameter_argument(p); },
             .gradients = [this](std::uint32_t p) { return gradients_.gradient_argument(p); },
             .accumulate = [](std::uint32_t) { return false; },
             .after =
                 [this](ComputePhase phase, std::uint32_t, const Operator&) {
                     if (phase == ComputePhase::backward) gradients_.add_up();
                 },
             .waits = blocks_.waits} {
    if (blocks_.before_operator)
        hooks_.before = [this](ComputePhase phase, std::uint32_t block, const Operator&) {
            blocks_.before_operator(phase, block);
        };
}

/// The data loader makes a boolean mask of b · s² (megatron-core) or s² (2021) elements.
bool MegatronPasses::makes_mask(Chunk chunk) const {
    if (!stage_.is_core()) return true;
    return stage_.options().create_attention_mask_in_dataloader &&
           (stage_.has_embedding(chunk) || stage_.has_head(chunk));
}

bool MegatronPasses::keeps_mask() const {
    return !stage_.is_core() || stage_.training().recompute == Recompute::full;
}

BufferId MegatronPasses::allocate_mask() {
    const std::uint64_t samples = stage_.is_core() ? stage_.training().micro_batch_size : 1;
    return builder_.allocate({.role = BufferRole::batch,
                              .category = Category::activations,
                              .dtype = DType::uint8,
                              .elements = samples * stage_.training().sequence_length *
                                          stage_.scenario().training.sequence_length});
}

std::unique_ptr<ActivationWalk> MegatronPasses::take_walk() {
    if (idle_walks_.empty()) {
        auto walk = std::make_unique<ActivationWalk>(stage_.model(), stage_.training(), builder_,
                                                     parameter_owners(stage_.model()), no_buffer,
                                                     ActivationWalk::GradientSums::fresh);
        walk->use_reentrant_checkpoints();
        if (!stage_.training().recompute_modules.empty())
            walk->recompute_segments(
                megatron_segments(stage_.model(), stage_.training(), stage_.options().transformer_engine));
        return walk;
    }
    std::unique_ptr<ActivationWalk> walk = std::move(idle_walks_.back());
    idle_walks_.pop_back();
    return walk;
}

void MegatronPasses::forward(InFlight& flight, Chunk chunk) {
    if (makes_mask(chunk)) flight.mask = allocate_mask();
    const ChunkBlocks blocks = stage_.blocks(chunk);
    flight.walk = take_walk();
    flight.walk->begin_chunk(blocks.first, blocks.last, flight.input.value);
    for (std::uint32_t block = blocks.first; block <= blocks.last; ++block) {
        if (blocks_.before_forward) blocks_.before_forward(block);
        flight.walk->forward(block, hooks_, {});
        if (blocks_.after_forward) blocks_.after_forward(block);
    }
    if (!keeps_mask()) builder_.free_if_there(flight.mask);
    flight.output = flight.walk->output();
    // Once sent, only the output's place in the graph is needed (deallocate_pipeline_outputs).
    if (stage_.is_core()) builder_.free_if_there(flight.output);
}

void MegatronPasses::backward(InFlight& flight, Chunk chunk, BufferId gradient, bool last) {
    if (gradient != no_buffer) flight.walk->receive_gradient(gradient);
    const ChunkBlocks blocks = stage_.blocks(chunk);
    for (std::uint32_t block = blocks.last + 1; block-- > blocks.first;) backward_block(flight, block, last);
    if (blocks_.after_chunk_backward) blocks_.after_chunk_backward(chunk);
    builder_.free_if_there(flight.mask);
    builder_.free_if_there(flight.output);
    if (!stage_.has_embedding(chunk)) flight.input.gradient = flight.walk->input_gradient();
    idle_walks_.push_back(std::move(flight.walk));
}

void MegatronPasses::backward_block(InFlight& flight, std::uint32_t block, bool last) {
    if (blocks_.before_backward) blocks_.before_backward(block);
    flight.walk->backward(block, hooks_, {}, false);
    if (blocks_.after_backward) blocks_.after_backward(block, last);
}

}  // namespace zeroplan
