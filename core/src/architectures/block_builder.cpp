#include "architectures/block_builder.hpp"

#include <algorithm>

#include "zeroplan/units.hpp"

namespace zeroplan {
namespace {

std::uint64_t product(const std::vector<std::uint64_t>& shape) {
    std::uint64_t numel = 1;
    for (const std::uint64_t size : shape) numel = checked_product(numel, size, "parameter elements");
    return numel;
}

/// relu and tanh are differentiated from their output, the others from their input.
bool saves_output(ActivationFunction function) {
    return function == ActivationFunction::relu || function == ActivationFunction::tanh;
}

/// Index of an equal kind in the model, added if there is none.
std::uint32_t kind_index(ModelSpec& model, const BlockKind& kind) {
    const auto found = std::find(model.block_kinds.begin(), model.block_kinds.end(), kind);
    const auto index = static_cast<std::uint32_t>(found - model.block_kinds.begin());
    if (found == model.block_kinds.end()) model.block_kinds.push_back(kind);
    return index;
}

}  // namespace

KernelStyle kernel_style(const LoweringOptions& options) {
    return {.fused = options.kernels != Kernels::eager,
            .torch_modules = options.torch_modules && options.kernels != Kernels::fused,
            .fp32_compute = !options.upcasts(),
            .autocast = options.autocast};
}

BlockBuilder::BlockBuilder(std::string name, TensorSpec input, KernelStyle style) : style_(style) {
    block_.kind.name = std::move(name);
    block_.kind.tensors.push_back(std::move(input));
}

BlockBuilder::ParameterId BlockBuilder::parameter(std::string suffix, std::vector<std::uint64_t> shape) {
    block_.parameters.push_back({std::move(suffix), std::move(shape)});
    return static_cast<ParameterId>(block_.parameters.size() - 1);
}

BlockBuilder::ParameterId BlockBuilder::untrained_parameter(std::string suffix,
                                                            std::vector<std::uint64_t> shape) {
    const ParameterId id = parameter(std::move(suffix), std::move(shape));
    block_.parameters[id].trainable = false;
    return id;
}

std::vector<BlockBuilder::ParameterId> BlockBuilder::linear_parameters(const std::string& module,
                                                                       std::uint64_t in, std::uint64_t out,
                                                                       bool bias, bool transposed) {
    std::vector<ParameterId> ids{
        parameter(module + ".weight", transposed ? std::vector{in, out} : std::vector{out, in})};
    if (bias) ids.push_back(parameter(module + ".bias", {out}));
    return ids;
}

BlockBuilder::TensorId BlockBuilder::tensor(std::string name, std::uint64_t per_token, TensorDType dtype,
                                            Category category) {
    return add_tensor(
        {.name = std::move(name), .extent = {.per_token = per_token}, .dtype = dtype, .category = category});
}

BlockBuilder::TensorId BlockBuilder::add_tensor(TensorSpec spec) {
    block_.kind.tensors.push_back(std::move(spec));
    return static_cast<TensorId>(block_.kind.tensors.size() - 1);
}

Operator& BlockBuilder::add(Operator op) {
    block_.kind.operators.push_back(std::move(op));
    return block_.kind.operators.back();
}

BlockBuilder::TensorId BlockBuilder::embedding(std::string name, TensorId tokens, ParameterId table,
                                               std::uint64_t width) {
    const TensorId out = tensor(name, width, style_.residual());
    add({.name = std::move(name),
         .kind = OperatorKind::embedding,
         .inputs = {tokens},
         .outputs = {out},
         .saved = {tokens},
         .parameters = {table},
         .saves_parameters = false});
    return out;
}

BlockBuilder::TensorId BlockBuilder::position_embedding(std::string name, TensorId x, ParameterId table,
                                                        std::uint64_t width) {
    const TensorId out = tensor(name, width, style_.residual());
    add({.name = std::move(name),
         .kind = OperatorKind::embedding,
         .inputs = {x},
         .outputs = {out},
         .parameters = {table},
         .forward_flops = {.per_token = width},
         .in_place = true,
         .saves_parameters = false});
    return out;
}

BlockBuilder::TensorId BlockBuilder::linear(std::string name, TensorId x, std::uint64_t in,
                                            std::uint64_t out_features, std::vector<ParameterId> parameters,
                                            Category category) {
    x = product_input(name, x);
    const TensorId out = tensor(name, out_features, TensorDType::compute, category);
    const std::uint64_t products = checked_product(in, out_features, "linear operations");
    // Backward multiplies twice: for the input's gradient (unless nothing wants it) and for the weight's.
    const std::uint64_t backward = block_.kind.tensors[x].needs_gradient ? 4 : 2;
    add({.name = std::move(name),
         .kind = OperatorKind::linear,
         .inputs = {x},
         .outputs = {out},
         .saved = {x},
         .parameters = std::move(parameters),
         .forward_flops = {.per_token = checked_product(2, products)},
         .backward_flops = {.per_token = checked_product(backward, products)},
         .in_features = in,
         .out_features = out_features});
    return out;
}

BlockBuilder::TensorId BlockBuilder::norm(std::string name, TensorId x, std::uint64_t width,
                                          std::uint64_t rows, std::vector<ParameterId> parameters,
                                          const NormKernel& kernel) {
    if (kernel.rms && style_.torch_modules && !kernel.fused)
        return torch_rms_norm(name, x, width, rows, std::move(parameters));
    const std::uint64_t total = width * rows;
    const bool widens = kernel.fp32_layer_norm && style_.torch_modules && !kernel.fused;
    if (widens) x = upcast(name + ".upcast", x, total);
    const TensorId out = tensor(name, total, style_.residual());
    const TensorId statistics = tensor(name + ".statistics", rows * (kernel.rms ? 1 : 2), TensorDType::fp32);
    Operator op{.name = name,
                .kind = OperatorKind::norm,
                .inputs = {x},
                .outputs = {out, statistics},
                .saved = {x, statistics},
                .parameters = std::move(parameters),
                .forward_flops = {.per_token = 5 * total},
                .backward_flops = {.per_token = 10 * total}};
    if (kernel.rms && !kernel.fused) {
        const TensorId normalised = tensor(name + ".normalised", total);
        op.outputs.push_back(normalised);
        op.saved.push_back(normalised);
        if (kernel.upcasts) {
            op.outputs.push_back(tensor(name + ".upcast", total, TensorDType::fp32));
            op.saved[0] = op.outputs.back();
        }
    }
    add(std::move(op));
    return out;
}

BlockBuilder::TensorId BlockBuilder::activation(std::string name, TensorId x, std::uint64_t width,
                                                ActivationFunction function) {
    const TensorId out = tensor(name, width);
    add({.name = std::move(name),
         .kind = OperatorKind::activation,
         .inputs = {x},
         .outputs = {out},
         .saved = {saves_output(function) ? out : x},
         .forward_flops = {.per_token = 8 * width},
         .backward_flops = {.per_token = 12 * width},
         .function = function});
    return out;
}

BlockBuilder::TensorId BlockBuilder::gated_activation(std::string name, TensorId gate, TensorId up,
                                                      std::uint64_t width, ActivationFunction function,
                                                      bool fused) {
    if (fused) {
        const TensorId out = tensor(name, width);
        add({.name = std::move(name),
             .kind = OperatorKind::gated_activation,
             .inputs = {gate, up},
             .outputs = {out},
             .saved = {gate, up},
             .forward_flops = {.per_token = 6 * width},
             .backward_flops = {.per_token = 12 * width},
             .function = function});
        return out;
    }
    const TensorId activated = activation(name + ".act", gate, width, function);
    return multiply(std::move(name), activated, up, width);
}

BlockBuilder::TensorId BlockBuilder::multiply(std::string name, TensorId x, TensorId y, std::uint64_t width) {
    const TensorId out = tensor(name, width);
    add({.name = std::move(name),
         .kind = OperatorKind::multiply,
         .inputs = {x, y},
         .outputs = {out},
         .saved = {x, y},
         .forward_flops = {.per_token = width},
         .backward_flops = {.per_token = 2 * width}});
    return out;
}

BlockBuilder::TensorId BlockBuilder::scaled(const std::string& name, TensorId x, std::uint64_t width) {
    const TensorId out = tensor(name + ".scaled", width, style_.residual());
    add({.name = name + ".scale",
         .kind = OperatorKind::elementwise,
         .inputs = {x},
         .outputs = {out},
         .forward_flops = {.per_token = width},
         .backward_flops = {.per_token = width}});
    return out;
}

BlockBuilder::TensorId BlockBuilder::residual_add(std::string name, TensorId x, TensorId branch,
                                                  std::uint64_t width) {
    const TensorId out = tensor(name, width, style_.residual());
    add({.name = std::move(name),
         .kind = OperatorKind::residual_add,
         .inputs = {x, branch},
         .outputs = {out},
         .forward_flops = {.per_token = width}});
    return out;
}

BlockBuilder::TensorId BlockBuilder::dropout(std::string name, TensorId x, const Extent& extent,
                                             bool attention_core) {
    const TensorId out = add_tensor({.name = name, .extent = extent, .dtype = block_.kind.tensors[x].dtype});
    const TensorId mask = add_tensor(
        {.name = name + ".mask", .extent = extent, .dtype = TensorDType::mask, .needs_gradient = false});
    add({.name = std::move(name),
         .kind = OperatorKind::dropout,
         .inputs = {x},
         .outputs = {out, mask},
         .saved = {mask},
         .forward_flops = {.per_token = 2 * extent.per_token, .per_token_pair = 2 * extent.per_token_pair},
         .backward_flops = {.per_token = extent.per_token, .per_token_pair = extent.per_token_pair},
         .attention_core = attention_core});
    return out;
}

BlockTemplate BlockBuilder::finish(TensorId output, bool is_layer) {
    block_.kind.output = output;
    block_.kind.is_layer = is_layer;
    block_.kind.parameter_count = static_cast<std::uint32_t>(block_.parameters.size());
    return std::move(block_);
}

BlockTemplate BlockBuilder::finish_with_loss(TensorId loss, TensorId target) {
    BlockTemplate head = finish(loss);
    head.kind.target_tensor = target;
    return head;
}

void append_block(ModelSpec& model, const BlockTemplate& block, std::string name, const std::string& prefix,
                  const TiedParameters& shared) {
    Block instance{.name = std::move(name), .kind = kind_index(model, block.kind)};
    for (std::uint32_t position = 0; position < block.parameters.size(); ++position) {
        const auto& from = block.parameters[position];
        Parameter parameter{.name = prefix + from.suffix, .shape = from.shape, .numel = product(from.shape)};
        parameter.trainable = from.trainable;
        const auto tie =
            std::find_if(shared.begin(), shared.end(), [&](const auto& s) { return s.first == position; });
        if (tie != shared.end()) parameter.shared_with = tie->second;
        instance.parameters.push_back(static_cast<std::uint32_t>(model.parameters.size()));
        model.parameters.push_back(std::move(parameter));
    }
    model.blocks.push_back(std::move(instance));
}

ModelSpec token_model(const DecoderConfig& config) {
    return {.name = config.name,
            .architecture = config.architecture,
            .batch = BatchKind::tokens,
            .vocabulary = config.vocab_size,
            .hidden_size = config.hidden_size,
            .layers = config.num_hidden_layers,
            .heads = config.num_attention_heads,
            .kv_heads = config.num_key_value_heads,
            .max_sequence_length = config.max_position_embeddings,
            .experts = config.experts};
}

TensorSpec token_tensor() {
    return {
        .name = "tokens", .extent = {.per_token = 1}, .dtype = TensorDType::int64, .needs_gradient = false};
}

TensorSpec hidden_tensor(std::uint64_t width, const KernelStyle& style) {
    return {.name = "input", .extent = {.per_token = width}, .dtype = style.residual()};
}

TensorSpec loss_tensor() {
    return {.name = "loss", .extent = {.constant = 1}, .dtype = TensorDType::fp32, .needs_gradient = false};
}

TensorSpec label_tensor() {
    return {
        .name = "labels", .extent = {.per_token = 1}, .dtype = TensorDType::int64, .needs_gradient = false};
}

}  // namespace zeroplan
