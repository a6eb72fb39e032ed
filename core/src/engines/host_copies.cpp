#include "engines/host_copies.hpp"

#include <utility>

#include "engines/torch_optimizer.hpp"

namespace zeroplan {
namespace {

Stream stream_of(CopyPath path) {
    switch (path) {
        case CopyPath::to_host:
            return Stream::to_host;
        case CopyPath::to_device:
            return Stream::to_device;
        case CopyPath::to_nvme:
        case CopyPath::from_nvme:
            break;
    }
    return Stream::nvme;
}

}  // namespace

OperationId issue_copy(ProgramBuilder& builder, const HostCopy& copy, std::vector<OperationId> waits) {
    return builder.on_stream(stream_of(copy.path), copy, std::move(waits));
}

OperationId copy_in_line(ProgramBuilder& builder, Stream stream, const HostCopy& copy) {
    std::vector<OperationId> waits = builder.last(stream);
    const std::vector<OperationId>& held = builder.held(stream);
    waits.insert(waits.end(), held.begin(), held.end());
    const OperationId id = issue_copy(builder, copy, std::move(waits));
    builder.hold(stream, id);
    return id;
}

std::uint64_t host_state_bytes(const TrainingConfig& training, std::uint64_t elements) {
    TrainingConfig on_host = training;
    on_host.optimizer_implementation = OptimizerImplementation::for_loop;
    std::uint64_t bytes = 0;
    for (const OptimizerTensor& tensor : optimizer_tensors(on_host, elements, {elements}))
        bytes += tensor.elements * bytes_per_element(tensor.dtype);
    return bytes;
}

std::uint64_t host_step_bytes(const TrainingConfig& training, std::uint64_t elements,
                              std::uint64_t parameter_bytes, std::uint64_t gradient_bytes) {
    return elements * (2 * parameter_bytes + gradient_bytes) + 2 * host_state_bytes(training, elements);
}

}  // namespace zeroplan
