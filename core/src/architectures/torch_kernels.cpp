#include "architectures/block_builder.hpp"

namespace zeroplan {

// Modules as PyTorch runs them one operator at a time. What each operator saves for backward is what its
// derivative in tools/autograd/derivatives.yaml names.

using TensorId = BlockBuilder::TensorId;

Extent BlockBuilder::fp32_workspace(std::uint64_t per_token) const {
    return {.per_token = style_.fp32_compute ? per_token : 2 * per_token};
}

TensorId BlockBuilder::upcast(std::string name, TensorId x, std::uint64_t width) {
    if (style_.fp32_compute || block_.kind.tensors[x].dtype == TensorDType::fp32) return x;
    const TensorId out = tensor(name, width, TensorDType::fp32, block_.kind.tensors[x].category);
    add({.name = std::move(name),
         .kind = OperatorKind::cast,
         .inputs = {x},
         .outputs = {out},
         .forward_flops = {.per_token = width},
         .backward_flops = {.per_token = width}});
    return out;
}

TensorId BlockBuilder::product_input(const std::string& name, TensorId x) {
    if (!style_.autocast || block_.kind.tensors[x].dtype != TensorDType::fp32) return x;
    const TensorSpec wide = block_.kind.tensors[x];
    const TensorId out = add_tensor({.name = name + ".input",
                                     .extent = wide.extent,
                                     .category = wide.category,
                                     .needs_gradient = wide.needs_gradient});
    add({.name = name + ".input",
         .kind = OperatorKind::cast,
         .inputs = {x},
         .outputs = {out},
         .forward_flops = {.per_token = wide.extent.per_token},
         .backward_flops = {.per_token = wide.extent.per_token}});
    return out;
}

/// x.float() · rsqrt(mean(x²) + eps), cast back, times the weight: an fp32 copy of the input, the normalised
/// value in the compute dtype and one number a row are kept (torchtitan, torchtune and Hugging Face alike).
TensorId BlockBuilder::torch_rms_norm(const std::string& name, TensorId x, std::uint64_t width,
                                      std::uint64_t rows, std::vector<ParameterId> parameters) {
    const std::uint64_t total = width * rows;
    const TensorId wide = upcast(name + ".upcast", x, total);
    const TensorId statistics = tensor(name + ".statistics", rows, TensorDType::fp32);
    add({.name = name + ".rsqrt",
         .kind = OperatorKind::elementwise,
         .inputs = {wide},
         .outputs = {statistics},
         .saved = {wide, statistics},
         .forward_flops = {.per_token = 2 * total},
         .backward_flops = {.per_token = 3 * total},
         .forward_workspace = fp32_workspace(total),     // the squares
         .backward_workspace = fp32_workspace(total)});  // 2 · x
    TensorId normalised = tensor(name + ".normalised.fp32", total, TensorDType::fp32);
    add({.name = name + ".normalise",
         .kind = OperatorKind::elementwise,
         .inputs = {wide, statistics},
         .outputs = {normalised},
         .saved = {wide, statistics},
         .forward_flops = {.per_token = total},
         .backward_flops = {.per_token = 3 * total},
         .backward_workspace = fp32_workspace(total)});  // gradient · x, before its sum over a row
    if (!style_.fp32_compute && !style_.autocast) {
        const TensorId narrow = tensor(name + ".normalised", total);
        add({.name = name + ".downcast",
             .kind = OperatorKind::cast,
             .inputs = {normalised},
             .outputs = {narrow},
             .forward_flops = {.per_token = total},
             .backward_flops = {.per_token = total}});
        normalised = narrow;
    }
    if (parameters.empty()) return normalised;
    const TensorId out = tensor(name, total, style_.residual());
    add({.name = name,
         .kind = OperatorKind::elementwise,
         .inputs = {normalised},
         .outputs = {out},
         .saved = {normalised},
         .parameters = std::move(parameters),
         .forward_flops = {.per_token = total},
         .backward_flops = {.per_token = 2 * total},
         .backward_workspace = {.per_token = total}});  // gradient · x, before its sum over the tokens
    return out;
}

}  // namespace zeroplan
