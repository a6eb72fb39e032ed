#include "engines/autograd_gradients.hpp"

#include <utility>

namespace zeroplan {

AutogradGradients::AutogradGradients(const ModelSpec& model, ProgramBuilder& builder, DType dtype)
    : model_(model),
      builder_(builder),
      dtype_(dtype),
      uses_(model.parameters.size(), 1),
      contributions_(model.parameters.size(), 0),
      sums_(model.parameters.size(), no_buffer) {
    for (const Parameter& parameter : model.parameters)
        if (parameter.shared_with) ++uses_[*parameter.shared_with];
}

BufferId AutogradGradients::fresh(std::uint32_t p) {
    if (!model_.parameters[p].trainable) return no_buffer;
    const BufferId buffer = builder_.allocate({.role = BufferRole::gradients,
                                               .category = Category::gradients,
                                               .dtype = dtype_,
                                               .owner = p,
                                               .elements = model_.parameters[p].numel});
    made_.push_back({p, buffer});
    return buffer;
}

std::vector<AutogradGradients::Complete> AutogradGradients::collect() {
    std::vector<Complete> complete;
    for (const auto& [p, buffer] : std::exchange(made_, {})) {
        if (sums_[p] == no_buffer) {
            sums_[p] = buffer;
        } else {
            builder_.on_stream(Stream::compute,
                               Accumulate{.from = {buffer}, .to = {sums_[p]}, .unit = p, .always_add = true});
            builder_.free(buffer);
        }
        if (++contributions_[p] < uses_[p]) continue;
        contributions_[p] = 0;
        complete.push_back({p, std::exchange(sums_[p], no_buffer)});
    }
    return complete;
}

}  // namespace zeroplan
