#include "engines/torch_step.hpp"

#include <algorithm>

#include "engines/muon.hpp"

namespace zeroplan {

void add_matrix(OwnedParameter& owned, const TrainingConfig& training, const ModelSpec& model,
                std::uint64_t padded, std::uint64_t ranks) {
    if (training.optimizer != Optimizer::muon) return;
    owned.matrices = muon_matrices(model, {owned.parameter});
    if (ranks > 1 && !owned.matrices.empty()) owned.gathered = padded * ranks;
}

void TorchOptimizer::add(OwnedParameter parameter) {
    const double on_host =
        training_.offload_optimizer == OffloadTarget::none ? 0 : training_.offload_fraction;
    const bool adams = training_.optimizer == Optimizer::muon && parameter.matrices.empty();
    const std::vector<std::uint64_t> vector{parameter.elements};
    for (const OptimizerTensor& tensor :
         optimizer_tensors(training_, parameter.elements, adams ? vector : parameter.shape)) {
        const auto away = static_cast<std::uint64_t>(static_cast<double>(tensor.elements) * on_host);
        host_bytes_ += away * bytes_per_element(tensor.dtype);
        if (away == tensor.elements) continue;
        const bool first = parameter.states.size() < 2;
        parameter.states.push_back(
            builder_.declare({.role = first ? BufferRole::momentum : BufferRole::variance,
                              .category = Category::optimizer_states,
                              .dtype = tensor.dtype,
                              .owner = parameter.unit,
                              .tensor = parameter.position,
                              .elements = tensor.elements - away}));
    }
    parameters_.push_back(std::move(parameter));
}

void TorchOptimizer::step() {
    std::vector<std::uint64_t> owned;
    for (const OwnedParameter& parameter : parameters_) owned.push_back(parameter.elements);
    std::vector<BufferId> temporaries;
    if (training_.offload_optimizer == OffloadTarget::none)
        for (const OptimizerTensor& tensor : step_temporaries(training_, owned).all_at_once)
            temporaries.push_back(builder_.allocate({.role = BufferRole::workspace,
                                                     .category = Category::temporaries,
                                                     .dtype = tensor.dtype,
                                                     .elements = tensor.elements}));
    // Gradients that are finished are on their way before anything is stepped: the device steps its share
    // beside the host. source: torchao/optim/cpu_offload.py (backward_hook, step)
    if (training_.offload_parameters == OffloadTarget::none)
        for (OwnedParameter& parameter : parameters_)
            if (parameter.gradient != no_buffer && parameter.sent_in != builder_.section_number())
                gradient_complete(parameter);
    for (const OwnedParameter& parameter : parameters_) step_one(parameter);
    // step: the host waits until the new values are back, before any gradient is freed.
    if (offloads() && steps_on_host()) builder_.wait_for_all();
    for (const BufferId buffer : temporaries) builder_.free(buffer);
}

std::vector<BufferId> TorchOptimizer::states() const {
    std::vector<BufferId> all;
    for (const OwnedParameter& parameter : parameters_)
        all.insert(all.end(), parameter.states.begin(), parameter.states.end());
    return all;
}

std::vector<Section> first_step_of(const std::vector<Section>& step, const std::vector<BufferId>& states,
                                   OperationId position) {
    std::vector<Section> result;
    for (std::size_t s = 0; s < step.size(); ++s) {
        Section section{step[s].name, step[s].repeat, {}};
        const auto& operations = step[s].operations;
        section.operations.reserve(operations.size() + states.size());
        for (OperationId o = 0; o <= operations.size(); ++o) {
            if (s + 1 == step.size() && o == position)
                for (const BufferId state : states) section.operations.push_back({Allocate{state}, {}, {}});
            if (o == operations.size()) break;
            const OperationBody& body = operations[o].body;
            if (std::holds_alternative<Allocate>(body) || std::holds_alternative<Free>(body))
                section.operations.push_back({body, operations[o].stream, {}});
        }
        result.push_back(std::move(section));
    }
    return result;
}

std::uint64_t cublas_workspace_bytes(std::uint32_t compute_capability) {
    return compute_capability >= 90 ? 32ULL << 20 : (8ULL << 20) + (128ULL << 10);
}

BufferId allocate_cublas_workspaces(ProgramBuilder& builder, std::uint32_t compute_capability) {
    const Buffer workspace{.role = BufferRole::workspace,
                           .category = Category::temporaries,
                           .dtype = DType::uint8,
                           .elements = cublas_workspace_bytes(compute_capability)};
    builder.allocate(workspace);
    return builder.allocate(workspace);
}

Constant cublas_workspace_constant(const ClusterSpec& cluster) {
    return {"cublas_workspace_bytes",
            static_cast<double>(cublas_workspace_bytes(cluster.gpu.compute_capability)), "B",
            "PyTorch 2.6, CublasHandlePool.cpp; one for forward's and one for backward's thread, from the "
            "caching "
            "allocator; CUBLAS_WORKSPACE_CONFIG changes it",
            "exact rule"};
}

}  // namespace zeroplan
