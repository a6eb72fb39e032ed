#include "engines/ddp_parameters.hpp"

#include "engines/parameter_storage.hpp"

namespace zeroplan {

DdpParameters::DdpParameters(const Scenario& scenario, const TorchUnits& units, ProgramBuilder& builder)
    : model_(scenario.model),
      training_(scenario.training),
      builder_(builder),
      autocast_(uses_autocast(scenario.training)),
      tensors_(model_.parameters.size()) {
    for (std::uint32_t u = 0; u < units.units.size(); ++u) {
        const auto& parameters = units.units[u].parameters;
        for (std::uint32_t i = 0; i < parameters.size(); ++i) {
            tensors_[parameters[i]].unit = u;
            tensors_[parameters[i]].position = i + 1;
        }
    }
}

Buffer DdpParameters::buffer(BufferRole role, Category category, DType dtype, std::uint32_t p) const {
    return {.role = role,
            .category = category,
            .dtype = dtype,
            .owner = tensors_[p].unit,
            .tensor = tensors_[p].position,
            .elements = model_.parameters[p].numel};
}

void DdpParameters::load(TorchOptimizer& optimizer, const std::function<bool(std::uint32_t)>& owned) {
    for (std::uint32_t p = 0; p < model_.parameters.size(); ++p)
        if (!model_.parameters[p].shared_with)
            load_parameter(p, model_.parameters[p].trainable && owned(p), optimizer);
}

void DdpParameters::load_parameter(std::uint32_t p, bool trained_here, TorchOptimizer& optimizer) {
    const Parameter& parameter = model_.parameters[p];
    Tensors& tensors = tensors_[p];
    const StoredAs as = stored_as(parameter, training_.parameter_dtype);
    Buffer values = buffer(BufferRole::parameters, Category::parameters, as.dtype, p);
    values.elements = as.elements(parameter.numel);
    tensors.stored = builder_.allocate(values);
    if (const std::uint64_t bytes = statistics_bytes(parameter); bytes > 0) {
        values.elements = bytes;
        builder_.allocate(values);
    }
    if (!trained_here) return;
    OwnedParameter owned{.parameter = p,
                         .unit = tensors.unit,
                         .position = tensors.position,
                         .elements = parameter.numel,
                         .shape = parameter.shape,
                         .values = tensors.stored,
                         .states = {}};
    add_matrix(owned, training_, model_, parameter.numel, 1);
    optimizer.add(std::move(owned));
}

void DdpParameters::cast_weights(ComputePhase phase, std::uint32_t block, const Operator& op) {
    if (!autocast_ || op.kind != OperatorKind::linear || phase == ComputePhase::backward) return;
    const DType compute = storage_dtype(training_.compute_dtype);
    for (const std::uint32_t position : op.parameters) {
        const std::uint32_t p = owner_of(model_, model_.blocks[block].parameters[position]);
        if (is_cast(p)) continue;
        Tensors& tensors = tensors_[p];
        tensors.cast = builder_.allocate(
            buffer(BufferRole::gathered_parameters, Category::gathered_parameters, compute, p));
        builder_.on_stream(Stream::compute,
                           Accumulate{.from = {tensors.stored}, .to = {tensors.cast}, .unit = tensors.unit});
    }
}

}  // namespace zeroplan
