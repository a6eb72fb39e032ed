#include <algorithm>

#include "engines/host_copies.hpp"
#include "engines/muon.hpp"
#include "engines/torch_step.hpp"

namespace zeroplan {

bool pages_states(const TrainingConfig& training) {
    return training.optimizer == Optimizer::adamw_8bit || training.optimizer == Optimizer::adamw_4bit ||
           training.optimizer == Optimizer::adamw_fp8;
}

std::uint64_t TorchOptimizer::offloaded(const OwnedParameter& parameter) const {
    if (!offloads()) return 0;
    return static_cast<std::uint64_t>(static_cast<double>(parameter.elements) * training_.offload_fraction);
}

void TorchOptimizer::step_one(const OwnedParameter& parameter) {
    if (parameter.elements == 0 && parameter.gathered == 0) return;
    if (training_.offload_parameters != OffloadTarget::none) {
        issue_host_step(parameter, parameter.elements, builder_.last(Stream::to_host));
        return;
    }
    if (parameter.gradient == no_buffer) return;
    const std::uint64_t away = offloaded(parameter);
    if (away == 0) return step_on_device(parameter, parameter.elements);
    if (!pages_states()) {
        step_on_host(parameter);
        if (away < parameter.elements) step_on_device(parameter, parameter.elements - away);
        return;
    }
    const HostCopy states{.path = CopyPath::to_device,
                          .role = BufferRole::momentum,
                          .owner = parameter.unit,
                          .bytes = host_state_bytes(training_, away)};
    copy_in_line(builder_, Stream::compute, states);
    step_on_device(parameter, parameter.elements);
    HostCopy back = states;
    back.path = CopyPath::to_host;
    copy_in_line(builder_, Stream::compute, back);
}

HostCopy TorchOptimizer::gradient_copy(const OwnedParameter& parameter) const {
    const std::uint64_t element = bytes_per_element(builder_.buffer(parameter.gradient).dtype);
    return {.path = CopyPath::to_host,
            .role = BufferRole::gradients,
            .owner = parameter.unit,
            .bytes = offloaded(parameter) * element,
            .buffer = parameter.gradient};
}

void TorchOptimizer::gradient_complete(OwnedParameter& parameter) {
    if (parameter.elements == 0 || offloaded(parameter) == 0 || pages_states()) return;
    parameter.sent = issue_copy(builder_, gradient_copy(parameter), builder_.last(Stream::compute));
    parameter.sent_in = builder_.section_number();
}

OperationId TorchOptimizer::issue_host_step(const OwnedParameter& parameter, std::uint64_t elements,
                                            std::vector<OperationId> waits) {
    // torchao's CPUOffloadOptimizer asks for the fused kernel; a recipe under FSDP gets what it names.
    const bool fused = training_.offload_parameters == OffloadTarget::none ||
                       training_.optimizer_implementation == OptimizerImplementation::fused;
    return builder_.on_stream(
        Stream::host,
        HostStep{.unit = parameter.unit,
                 .elements = elements,
                 .bytes = host_step_bytes(training_, elements, bytes_per_element(training_.parameter_dtype),
                                          bytes_per_element(training_.gradient_dtype)),
                 .fused = fused},
        std::move(waits));
}

/// The gradient is there, or goes there now; the new values come back while the next parameter is stepped.
/// source: torchao/optim/cpu_offload.py
void TorchOptimizer::step_on_host(const OwnedParameter& parameter) {
    const bool sent = parameter.sent_in == builder_.section_number();
    const OperationId copied =
        sent ? parameter.sent
             : issue_copy(builder_, gradient_copy(parameter), builder_.last(Stream::compute));
    const std::uint64_t away = offloaded(parameter);
    const OperationId stepped = issue_host_step(parameter, away, {copied});
    std::vector<OperationId> waits = builder_.last(Stream::compute);
    waits.push_back(stepped);
    const OperationId back = issue_copy(builder_,
                                        {.path = CopyPath::to_device,
                                         .role = BufferRole::parameters,
                                         .owner = parameter.unit,
                                         .bytes = away * bytes_per_element(training_.parameter_dtype),
                                         .buffer = parameter.values},
                                        std::move(waits));
    builder_.hold(Stream::compute, back);
}

/// Muon multiplies whole matrices: every rank gathers them and keeps its rows of the result.
std::vector<OperationId> TorchOptimizer::gather_matrix(const OwnedParameter& parameter, BufferId whole) {
    if (parameter.gathered == 0) return {};
    return {builder_.on_stream(Stream::gather,
                               Collective{.kind = CollectiveKind::all_gather,
                                          .group = GroupKind::shard_group,
                                          .send = {whole, true},
                                          .receive = {whole, false},
                                          .dtype = DType::bf16,
                                          .elements = parameter.gathered,
                                          .unit = parameter.unit},
                               builder_.last(Stream::compute))};
}

void TorchOptimizer::step_on_device(const OwnedParameter& parameter, std::uint64_t elements) {
    const auto state = [&](std::size_t from_the_end) {
        const std::size_t count = parameter.states.size();
        return count < from_the_end ? Operand{} : Operand{parameter.states[count - from_the_end]};
    };
    BufferId workspace = no_buffer;
    std::vector<OperationId> gathered;
    if (const std::uint64_t needed = orthogonalising_workspace(parameter.matrices); needed > 0) {
        workspace = builder_.allocate({.role = BufferRole::workspace,
                                       .category = Category::temporaries,
                                       .dtype = DType::bf16,
                                       .owner = parameter.unit,
                                       .elements = std::max(needed, parameter.gathered)});
        gathered = gather_matrix(parameter, workspace);
    }
    builder_.on_stream(Stream::compute,
                       OptimizerStep{.unit = parameter.unit,
                                     .parameters = {parameter.values},
                                     .gradients = {parameter.gradient},
                                     .momentum = state(2),
                                     .variance = state(1),
                                     .elements = elements,
                                     .orthogonalised = parameter.matrices},
                       gathered);
    if (workspace != no_buffer) builder_.free(workspace, std::move(gathered));
}

}  // namespace zeroplan
