#include "architectures/mlp.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "architectures/written_activations.hpp"

namespace zeroplan {

MlpKind mlp_kind(const std::string& word) {
    constexpr std::array<std::pair<std::string_view, MlpKind>, 5> known{
        {{"swiglu", {ActivationFunction::silu, true}},
         {"geglu", {ActivationFunction::gelu, true}},
         {"gelu", {ActivationFunction::gelu, false}},
         {"relu", {ActivationFunction::relu, false}},
         {"squared_relu", {ActivationFunction::squared_relu, false}}}};
    for (const auto& [name, mlp] : known)
        if (name == word) return mlp;
    throw Error(ErrorCode::invalid_input, fmt::format("unknown mlp '{}'", word),
                "one of: swiglu, geglu, gelu, relu, squared_relu", {"", "/model/mlp"});
}

MlpLayer::MlpLayer(BlockBuilder& block, const DecoderConfig& config, const DecoderNames& names,
                   const LoweringOptions& options)
    : block_(block),
      config_(config),
      names_(names),
      options_(options),
      kind_(mlp_kind(config.mlp)),
      fused_(options.kernels != Kernels::eager),
      hidden_(config.hidden_size),
      width_(config.intermediate_size) {}

MlpLayer::Parameters MlpLayer::linear(const std::string& module, std::uint64_t in, std::uint64_t out) {
    return block_.linear_parameters(module, in, out, config_.mlp_bias, names_.transposed);
}

void MlpLayer::declare() {
    if (config_.packed_gate_up) {
        up_ = linear(names_.packed_gate_up, hidden_, 2 * width_);
    } else {
        if (kind_.gated) gate_ = linear(names_.gate, hidden_, width_);
        const bool renamed = kind_.gated && !names_.gated_up.empty();
        up_ = linear(renamed ? names_.gated_up : names_.up, hidden_, width_);
    }
    down_ = linear(names_.down, width_, hidden_);
}

BlockBuilder::TensorId MlpLayer::write(TensorId x) {
    TensorId inner = inside(x);
    if (options_.dropout && names_.drops_inside_mlp)
        inner = block_.dropout("mlp.inner_dropout", inner, {.per_token = width_});
    return block_.linear(names_.down, inner, width_, hidden_, down_);
}

BlockBuilder::TensorId MlpLayer::inside(TensorId x) {
    if (config_.packed_gate_up)
        return packed_gated(block_.linear(names_.packed_gate_up, x, hidden_, 2 * width_, up_));
    if (kind_.gated) return gated(x);
    const TensorId up = block_.linear(names_.up, x, hidden_, width_, up_);
    if (writes_activation()) return written_activation(block_, "mlp.act", up, width_, config_.activation);
    return block_.activation("mlp.act", up, width_, kind_.function);
}

BlockBuilder::TensorId MlpLayer::gated(TensorId x) {
    const TensorId gate = block_.linear(names_.gate, x, hidden_, width_, gate_);
    const TensorId up = block_.linear(names_.up, x, hidden_, width_, up_);
    if (!writes_activation())
        return block_.gated_activation("mlp.act", gate, up, width_, kind_.function, fused_);
    const TensorId activated = written_activation(block_, "mlp.act.gate", gate, width_, config_.activation);
    return block_.multiply("mlp.act", activated, up, width_);
}

bool MlpLayer::writes_activation() const {
    return block_.style().torch_modules && !fused_ && kind_.function == ActivationFunction::gelu &&
           is_written_activation(config_.activation);
}

/// Gate and up are halves of one tensor; unfused, act(gate) is kept beside it.
BlockBuilder::TensorId MlpLayer::packed_gated(TensorId packed) {
    const TensorId out = block_.tensor("mlp.act", width_);
    Operator op{.name = "mlp.act",
                .kind = OperatorKind::gated_activation,
                .inputs = {packed},
                .outputs = {out},
                .saved = {packed},
                .forward_flops = {.per_token = 6 * width_},
                .backward_flops = {.per_token = 12 * width_},
                .function = kind_.function};
    if (!fused_) {
        op.outputs.push_back(block_.add_tensor(
            {.name = "mlp.act.gate", .extent = {.per_token = width_}, .needs_gradient = false}));
        op.saved.push_back(op.outputs.back());
    }
    block_.add(std::move(op));
    return out;
}

}  // namespace zeroplan
