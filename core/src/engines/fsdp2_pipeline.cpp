#include "engines/fsdp2_pipeline.hpp"

namespace zeroplan {

Buffer Fsdp2Pipeline::tensor_of(BufferRole role, std::uint32_t block, std::uint32_t tensor) const {
    const TensorSpec& spec = model().block_kinds[model().blocks[block].kind].tensors[tensor];
    const TrainingConfig& training = rank_.training();
    return {.role = role,
            .category = Category::communication_buffers,
            .dtype = resolve(spec.dtype, rank_.compute_dtype()),
            .owner = block,
            .tensor = tensor,
            .elements = elements(spec.extent, training.micro_batch_size, training.sequence_length)};
}

void Fsdp2Pipeline::allocate_received() {
    received_.assign(stage_.chunks.size(), {});
    for (std::size_t c = 0; c < stage_.chunks.size(); ++c) {
        const ChunkBlocks& blocks = stage_.chunks[c];
        for (std::uint64_t m = 0; m < rank_.micro_batches(); ++m) {
            Received received;
            if (!stage_.parts[c].embedding)
                received.input = builder_.allocate(tensor_of(BufferRole::activation, blocks.first, 0));
            if (!stage_.parts[c].head)
                received.gradient = builder_.allocate(
                    tensor_of(BufferRole::activation_gradient, blocks.last, output_of(blocks.last)));
            received_[c].push_back(received);
        }
    }
}

void Fsdp2Pipeline::run(BufferId workspace) {
    const auto micro_batches = static_cast<std::uint32_t>(rank_.micro_batches());
    const std::vector<PipelineAction> actions = pipeline_schedule(
        {rank_.training().pipeline_schedule, static_cast<std::uint32_t>(rank_.training().pipeline_parallel),
         static_cast<std::uint32_t>(stage_.chunks.size()), micro_batches},
        static_cast<std::uint32_t>(number_));
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::unique_ptr<ActivationWalk>> in_flight;
    for (const PipelineAction& action : actions) {
        std::unique_ptr<ActivationWalk>& walk = in_flight[{action.chunk, action.micro_batch}];
        if (action.forward) {
            walk = blocks_.new_walk(workspace);
            forward(*walk, action);
            continue;
        }
        gradients_.begin_backward(action.micro_batch + 1 == micro_batches);
        backward(*walk, action);
        walk.reset();
    }
}

/// Messages are asynchronous (isend); a receive is waited for where its tensor is used.
void Fsdp2Pipeline::transfer(bool send, bool gradients, std::uint64_t lower, std::uint32_t block,
                             std::uint32_t tensor) {
    const Buffer sent = tensor_of(BufferRole::activation, block, tensor);
    const Transfer message{.send = send,
                           .channel = static_cast<std::uint32_t>(2 * lower + (gradients ? 1 : 0)),
                           .dtype = sent.dtype,
                           .elements = sent.elements,
                           .to_next = !gradients};
    if (send)
        builder_.on_stream(Stream::exchange, message, builder_.last(Stream::compute));
    else
        builder_.on_stream(Stream::compute, message);
}

/// The chunk's message with the virtual stage before it.
void Fsdp2Pipeline::transfer_before(const PipelineAction& action, bool send) {
    if (!embeds(action))
        transfer(send, send, virtual_stage(action) - 1, stage_.chunks[action.chunk].first, 0);
}

/// The chunk's message with the virtual stage behind it.
void Fsdp2Pipeline::transfer_behind(const PipelineAction& action, bool send) {
    const std::uint32_t last = stage_.chunks[action.chunk].last;
    if (!stage_.parts[action.chunk].head) transfer(send, !send, virtual_stage(action), last, output_of(last));
}

void Fsdp2Pipeline::forward(ActivationWalk& walk, const PipelineAction& action) {
    const ChunkBlocks& blocks = stage_.chunks[action.chunk];
    transfer_before(action, false);
    walk.begin_chunk(blocks.first, blocks.last, received_[action.chunk][action.micro_batch].input);
    for (std::uint32_t b = blocks.first; b <= blocks.last; ++b) blocks_.forward(walk, b, false);
    parameters_.flush_forward_gather();
    transfer_behind(action, true);
    keep_output(walk, blocks.last);
}

/// The last stage keeps its logits.
void Fsdp2Pipeline::keep_output(const ActivationWalk& walk, std::uint32_t last) {
    if (walk.output() != no_buffer)
        outputs_.push_back(walk.output());
    else
        keep_logits(last);
}

void Fsdp2Pipeline::keep_logits(std::uint32_t head) {
    for (const Operator& op : model().block_kinds[model().blocks[head].kind].operators)
        if (op.kind == OperatorKind::linear) {
            Buffer logits = tensor_of(BufferRole::activation, head, op.outputs.front());
            logits.category = Category::logits;
            outputs_.push_back(builder_.allocate(logits));
        }
}

void Fsdp2Pipeline::backward(ActivationWalk& walk, const PipelineAction& action) {
    const ChunkBlocks& blocks = stage_.chunks[action.chunk];
    const BufferId arrived = received_[action.chunk][action.micro_batch].gradient;
    if (arrived != no_buffer) walk.receive_gradient(arrived);
    transfer_behind(action, false);
    bool uses_root = false;
    for (std::uint32_t b = blocks.last + 1; b-- > blocks.first;) {
        blocks_.backward(walk, b, b == blocks.first);
        uses_root = uses_root || rank_.unit(rank_.units().unit_of_block[b]).is_root;
    }
    if (uses_root) blocks_.post_backward(0);
    transfer_before(action, true);
    if (!embeds(action)) builder_.free(walk.input_gradient());
}

void Fsdp2Pipeline::free_outputs() {
    for (const BufferId output : outputs_) builder_.free(output);
}

}  // namespace zeroplan
