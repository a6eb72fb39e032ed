#include "engines/stage_messages.hpp"

namespace zeroplan {
namespace {

Transfer transfer(bool send, const StageMessage& message) {
    return {.send = send,
            .channel = 2 * message.lower + (message.gradients ? 1U : 0U),
            .dtype = message.dtype,
            .elements = message.elements,
            .to_next = !message.gradients};
}

}  // namespace

void send_to_stage(ProgramBuilder& builder, const StageMessage& message, Stream stream) {
    builder.on_stream(stream, transfer(true, message), builder.last(Stream::compute));
}

void receive_from_stage(ProgramBuilder& builder, const StageMessage& message) {
    builder.on_stream(Stream::compute, transfer(false, message));
}

void gather_parts(ProgramBuilder& builder, DType dtype, std::uint64_t elements) {
    builder.on_stream(Stream::compute, Collective{.kind = CollectiveKind::all_gather,
                                                  .group = GroupKind::tensor_group,
                                                  .send = {},
                                                  .receive = {},
                                                  .dtype = dtype,
                                                  .elements = elements});
}

}  // namespace zeroplan
