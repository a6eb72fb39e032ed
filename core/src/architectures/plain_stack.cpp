#include <fmt/format.h>

#include "architectures/block_builder.hpp"

namespace zeroplan {
namespace {

using TensorId = BlockBuilder::TensorId;

[[noreturn]] void refuse(std::string message, std::string hint, std::string pointer) {
    throw Error(ErrorCode::invalid_input, std::move(message), std::move(hint), {"", std::move(pointer)});
}

void check(const std::vector<StackLayer>& layers, const std::string& loss) {
    if (layers.empty())
        refuse("a plain stack needs at least one layer", "add {\"linear\": [in, out]}", "/model/layers");
    for (std::size_t i = 0; i < layers.size(); ++i) {
        if (layers[i].in == 0 || layers[i].out == 0)
            refuse(fmt::format("layer {} is linear [{}, {}]: both sizes must be above 0", i, layers[i].in,
                               layers[i].out),
                   "give [in_features, out_features]", fmt::format("/model/layers/{}/linear", i));
        if (i > 0 && layers[i].in != layers[i - 1].out)
            refuse(fmt::format("layer {} takes {} features, layer {} gives {}", i, layers[i].in, i - 1,
                               layers[i - 1].out),
                   "make them equal", fmt::format("/model/layers/{}/linear/0", i));
    }
    if (loss != "mse" && loss != "cross_entropy")
        refuse(fmt::format("unknown loss '{}'", loss), "one of: mse, cross_entropy", "/model/loss");
    if (loss == "mse" && layers.front().in != layers.back().out)
        refuse(fmt::format("mse compares the output ({} features) with the input ({} features)",
                           layers.back().out, layers.front().in),
               "make them equal, or use \"loss\": \"cross_entropy\"", "/model/loss");
}

TensorId add_loss(BlockBuilder& block, TensorId prediction, std::uint64_t width, bool mse,
                  std::uint64_t input_width, std::optional<std::uint32_t>& target) {
    TensorSpec spec = label_tensor();
    if (mse)
        spec = {.name = "target",
                .extent = {.per_token = input_width},
                .dtype = TensorDType::compute,
                .needs_gradient = false};
    const TensorId expected = block.add_tensor(std::move(spec));
    target = expected;
    const TensorId loss = block.add_tensor(loss_tensor());
    block.add({.name = "loss",
               .kind = mse ? OperatorKind::mean_squared_error : OperatorKind::cross_entropy,
               .inputs = {prediction, expected},
               .outputs = {loss},
               .saved = {prediction, expected},
               .forward_flops = {.per_token = (mse ? 3 : 5) * width},
               .backward_flops = {.per_token = (mse ? 2 : 3) * width}});
    return loss;
}

}  // namespace

ModelSpec build_plain_stack(const std::string& name, const std::vector<StackLayer>& layers,
                            const std::string& loss) {
    check(layers, loss);
    const bool mse = loss == "mse";
    ModelSpec model{.name = name,
                    .architecture = "plain stack",
                    .batch = BatchKind::features,
                    .feature_width = layers.front().in,
                    .target_is_input = mse,
                    .layers = layers.size()};
    if (!mse) model.vocabulary = layers.back().out;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const StackLayer& layer = layers[i];
        const bool first = i == 0, last = i + 1 == layers.size();
        BlockBuilder block(first  ? "first linear"
                           : last ? "last linear"
                                  : "linear",
                           {.name = "input", .extent = {.per_token = layer.in}, .needs_gradient = !first});
        const auto parameters = block.linear_parameters("linear", layer.in, layer.out, layer.bias);
        const bool is_logits = last && !mse && layer.activation == ActivationFunction::none;
        TensorId x = block.linear("linear", 0, layer.in, layer.out, parameters,
                                  is_logits ? Category::logits : Category::activations);
        if (layer.activation != ActivationFunction::none)
            x = block.activation("activation", x, layer.out, layer.activation);
        std::optional<std::uint32_t> target;
        if (last) x = add_loss(block, x, layer.out, mse, layers.front().in, target);
        BlockTemplate finished = block.finish(x);
        finished.kind.target_tensor = target;
        const std::string block_name = fmt::format("layers.{}", i);
        append_block(model, finished, block_name, block_name + ".");
    }
    return model;
}

}  // namespace zeroplan
