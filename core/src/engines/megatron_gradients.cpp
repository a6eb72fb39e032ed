#include "engines/megatron_gradients.hpp"

#include <algorithm>
#include <utility>

#include "engines/tied_embedding.hpp"

namespace zeroplan {
namespace {

bool is_grouped(const Parameter& parameter) {
    return parameter.name.find(".experts.") != std::string::npos && !parameter.name.ends_with("weight0");
}

}  // namespace

/// With gradient_accumulation_fusion the products add to the buffer.
MegatronGradients::MegatronGradients(const MegatronStage& stage, ParameterPlaces places,
                                     ProgramBuilder& builder)
    : stage_(stage),
      places_(std::move(places)),
      builder_(builder),
      fused_(stage.model().parameters.size(), false) {
    const ModelSpec& model = stage.model();
    for (const Parameter& parameter : model.parameters) grouped_.push_back(is_grouped(parameter));
    if (!stage.options().gradient_accumulation_fusion) return;
    for (const Block& block : model.blocks)
        for (const Operator& op : model.block_kinds[block.kind].operators)
            if (op.kind == OperatorKind::linear) find_fused(block, op);
    for (const Parameter& parameter : model.parameters)
        if (const auto owner = parameter.shared_with) fused_[*owner] = false;
}

/// The router's product is PyTorch's own.
void MegatronGradients::find_fused(const Block& block, const Operator& op) {
    for (const std::uint32_t position : op.parameters) {
        const Parameter& parameter = stage_.model().parameters[block.parameters[position]];
        if (parameter.shape.size() == 2 && !parameter.name.ends_with("router.weight"))
            fused_[block.parameters[position]] = true;
    }
}

void MegatronGradients::allocate_dummies() {
    std::vector<std::vector<std::uint64_t>> shapes;
    for (std::uint32_t p = 0; p < fused_.size(); ++p) {
        const Parameter& parameter = stage_.model().parameters[p];
        if (!fused_[p] || std::find(shapes.begin(), shapes.end(), parameter.shape) != shapes.end()) continue;
        shapes.push_back(parameter.shape);
        builder_.allocate({.role = BufferRole::workspace,
                           .category = Category::temporaries,
                           .dtype = stage_.training().compute_dtype,
                           .elements = parameter.numel});
    }
}

BufferId MegatronGradients::parameter_argument(std::uint32_t parameter) const {
    return grouped_[parameter] ? no_buffer : places_.values(parameter);
}

BufferId MegatronGradients::allocate_gradient(std::uint32_t parameter) {
    return builder_.allocate({.role = BufferRole::gradients,
                              .category = Category::gradients,
                              .dtype = stage_.training().parameter_dtype,
                              .owner = parameter,
                              .elements = stage_.model().parameters[parameter].numel});
}

/// Autograd makes a parameter's gradient in the parameter's dtype; it is then added to the buffer and freed.
BufferId MegatronGradients::gradient_of(std::uint32_t parameter) {
    BufferId sum = places_.gradients(parameter);
    if (fused_[parameter]) return sum;
    if (sum == no_buffer) {
        step_gradients_.resize(fused_.size(), no_buffer);
        sum = step_gradients_[parameter];
        if (sum == no_buffer) return step_gradients_[parameter] = allocate_gradient(parameter);
    }
    const BufferId fresh = allocate_gradient(parameter);
    pending_.add(fresh, sum);
    return fresh;
}

BufferId MegatronGradients::gradient_argument(std::uint32_t parameter) {
    const BufferId gradient = gradient_of(parameter);
    return grouped_[parameter] ? no_buffer : gradient;
}

void MegatronGradients::reduce_flattened(MegatronState& state) {
    std::uint64_t elements = 0;
    for (const BufferId old : state.kept_gradients()) {
        elements += builder_.buffer(old).elements;
        builder_.free(old);
    }
    all_reduce(elements);
    // Of the 16-bit gradients, once they are reduced. source: megatron/training.py of 2021, train_step
    if (const auto copy = stage_.parts().tied_copy)
        all_reduce_tied_gradient(builder_, Stream::compute,
                                 {*copy, step_gradients_[*copy], stage_.training().parameter_dtype,
                                  stage_.model().parameters[*copy].numel});
    state.renew_main_gradients(builder_);
    for (const BufferId buffer : step_gradients_)
        if (buffer != no_buffer) builder_.free(buffer);
    for (const BufferId old : state.kept_gradients()) builder_.allocate_again(old);
}

void MegatronGradients::all_reduce(std::uint64_t elements) {
    const DType dtype = stage_.training().gradient_dtype;
    const BufferId coalesced =
        builder_.allocate({.role = BufferRole::gradient_bucket,
                           .category = Category::communication_buffers,
                           .dtype = dtype,
                           .owner = static_cast<std::uint32_t>(stage_.model().parameters.size()),
                           .elements = elements});
    if (elements > 0)
        builder_.on_stream(Stream::compute, Collective{.kind = CollectiveKind::all_reduce,
                                                       .group = GroupKind::replica_group,
                                                       .send = {coalesced},
                                                       .receive = {coalesced},
                                                       .dtype = dtype,
                                                       .elements = elements});
    builder_.free(coalesced);
}

}  // namespace zeroplan
