#include "engines/deepspeed_pipe.hpp"

#include <algorithm>

#include "engines/stage_messages.hpp"

namespace zeroplan {

Buffer DeepSpeedPipe::tensor(std::uint32_t block, std::uint32_t index, BufferRole role) const {
    const ModelSpec& model = rank_.model;
    const TensorSpec& spec = model.block_kinds[model.blocks[block].kind].tensors[index];
    return {
        .role = role,
        .category = spec.category,
        .dtype = resolve(spec.dtype, rank_.training.compute_dtype),
        .owner = block,
        .tensor = index,
        .elements = elements(spec.extent, rank_.training.micro_batch_size, rank_.training.sequence_length)};
}

Buffer DeepSpeedPipe::input() const {
    return tensor(place_.blocks.first, 0, BufferRole::activation);
}

Buffer DeepSpeedPipe::output(BufferRole role) const {
    const ModelSpec& model = rank_.model;
    return tensor(place_.blocks.last, model.block_kinds[model.blocks[place_.blocks.last].kind].output, role);
}

Buffer DeepSpeedPipe::part(Buffer whole) const {
    if (is_partitioned())
        whole.elements =
            (whole.elements + rank_.training.tensor_parallel - 1) / rank_.training.tensor_parallel;
    return whole;
}

void DeepSpeedPipe::free_if_there(BufferId& buffer) {
    if (buffer != no_buffer) builder_.free(buffer);
    buffer = no_buffer;
}

void DeepSpeedPipe::allocate_receive_buffers() {
    if (!is_first()) builder_.allocate(part(input()));
    if (!is_last()) builder_.allocate(part(output(BufferRole::activation_gradient)));
    if (!is_last() || !place_.pipe_engine) return;
    const std::uint64_t buffers = std::min<std::uint64_t>(2, rank_.training.gradient_accumulation_steps);
    for (std::uint64_t b = 0; b < buffers; ++b) kept_logits_.push_back(builder_.allocate(logits()));
}

/// The tensor that the loss works on: its widest output, or its input where it overwrites that.
Buffer DeepSpeedPipe::logits() const {
    const BlockKind& kind = rank_.model.block_kinds[rank_.model.blocks[place_.blocks.last].kind];
    const Operator& loss = kind.operators.back();
    Buffer widest = tensor(place_.blocks.last, loss.inputs.front(), BufferRole::activation);
    for (const std::uint32_t output : loss.outputs) {
        const Buffer candidate = tensor(place_.blocks.last, output, BufferRole::activation);
        if (allocated_bytes(candidate) > allocated_bytes(widest)) widest = candidate;
    }
    return widest;
}

void DeepSpeedPipe::overwrite_oldest_logits() {
    if (!kept_logits_.empty()) builder_.free(kept_logits_.front());
}

/// What a backward leaves takes the place of what its forward overwrote.
void DeepSpeedPipe::keep_logits() {
    if (!kept_logits_.empty()) builder_.allocate_again(kept_logits_.front());
}

StageMessage DeepSpeedPipe::message(const Buffer& whole, std::uint32_t lower, bool gradients) const {
    return {.lower = lower, .gradients = gradients, .dtype = whole.dtype, .elements = part(whole).elements};
}

/// PartitionedTensor.full(): an all-gather among the tensor-parallel ranks.
void DeepSpeedPipe::make_whole(const Buffer& whole) {
    if (is_partitioned()) gather_parts(builder_, whole.dtype, whole.elements);
}

void DeepSpeedPipe::receive(DeepSpeedFlight& flight) {
    if (is_first()) return;
    receive_from_stage(builder_, message(input(), place_.stage - 1, false));
    flight.received = builder_.allocate(part(input()));
    flight.input = builder_.allocate(input());
    make_whole(input());
    // The gathered input takes the place of the part; an input that is whole is cloned and kept.
    if (is_partitioned()) free_if_there(flight.received);
}

void DeepSpeedPipe::keep_output(DeepSpeedFlight& flight) {
    if (is_last()) return;
    flight.output = flight.walk->output();
    send_to_stage(builder_, message(output(BufferRole::activation), place_.stage, false));
    if (!is_partitioned()) return;
    const BufferId kept = builder_.allocate(part(output(BufferRole::activation)));
    builder_.free(flight.output);
    flight.output = kept;
}

BufferId DeepSpeedPipe::receive_gradient(DeepSpeedFlight& flight) {
    if (is_last()) return no_buffer;
    receive_from_stage(builder_, message(output(BufferRole::activation_gradient), place_.stage, true));
    if (is_partitioned()) {
        make_whole(output(BufferRole::activation));
        const BufferId whole = builder_.allocate(output(BufferRole::activation));
        builder_.free(flight.output);
        flight.output = whole;
    }
    const BufferId gradient = builder_.allocate(output(BufferRole::activation_gradient));
    make_whole(builder_.buffer(gradient));
    return gradient;
}

void DeepSpeedPipe::finish(DeepSpeedFlight& flight, BufferId output_gradient) {
    free_if_there(flight.output);
    free_if_there(output_gradient);
    free_if_there(flight.mask);
    if (is_first()) return;
    BufferId gradient = flight.walk->input_gradient();
    send_to_stage(builder_, message(input(), place_.stage - 1, true));
    if (is_partitioned()) builder_.free(builder_.allocate(part(input())));
    free_if_there(gradient);
    free_if_there(flight.input);
    free_if_there(flight.received);
}

}  // namespace zeroplan
