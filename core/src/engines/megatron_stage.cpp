#include "engines/megatron_stage.hpp"

#include "engines/megatron_context.hpp"

namespace zeroplan {
namespace {

TrainingConfig local_training(const Scenario& scenario, const MegatronOptions& options) {
    TrainingConfig training = scenario.training;
    training.sequence_length = local_sequence_length(training);
    // A group of layers that is recomputed together is one block of the stage's model.
    if (training.recompute == Recompute::full && options.recompute_block) training.recompute_every = 1;
    return training;
}

}  // namespace

MegatronStage::MegatronStage(const Scenario& scenario, const MegatronOptions& options, std::uint32_t number)
    : scenario_(scenario),
      options_(options),
      training_(local_training(scenario, options)),
      number_(number),
      parts_(megatron_stage_model(scenario, options,
                                  stage_chunks(scenario.training, scenario.model.layers, number))) {}

BufferId MegatronStage::allocate(ProgramBuilder& builder, std::uint32_t block, std::uint32_t index,
                                 BufferRole role) const {
    const TensorSpec& spec = tensor(block, index);
    return builder.allocate({.role = role,
                             .category = spec.category,
                             .dtype = resolve(spec.dtype, training_.compute_dtype),
                             .owner = block,
                             .tensor = index,
                             .elements = numel(spec)});
}

BufferId MegatronStage::allocate_input(ProgramBuilder& builder, Chunk chunk) const {
    return allocate(builder, blocks(chunk).first, 0, BufferRole::activation);
}

BufferId MegatronStage::allocate_input_gradient(ProgramBuilder& builder, Chunk chunk) const {
    return allocate(builder, blocks(chunk).first, 0, BufferRole::activation_gradient);
}

BufferId MegatronStage::allocate_output_gradient(ProgramBuilder& builder, Chunk chunk) const {
    const std::uint32_t last = blocks(chunk).last;
    return allocate(builder, last, output_of(last), BufferRole::activation_gradient);
}

}  // namespace zeroplan
