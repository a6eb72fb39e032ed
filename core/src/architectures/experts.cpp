#include "architectures/experts.hpp"

#include "zeroplan/units.hpp"

namespace zeroplan {

using TensorId = BlockBuilder::TensorId;

/// In registration order; names as in transformers 5, which stacks the routed experts.
void ExpertLayer::declare() {
    const std::uint64_t ffn = config_.intermediate_size;
    router_ = {block_.parameter("mlp.gate.weight", {config_.count, hidden_})};
    // Balances the experts' load step by step, without a gradient (DeepSeek-V3's report, 2.1.2).
    if (config_.correction_bias)
        block_.untrained_parameter("mlp.gate.e_score_correction_bias", {config_.count});
    gate_up_ = {block_.parameter("mlp.experts.gate_up_proj", {config_.count, 2 * ffn, hidden_})};
    down_ = {block_.parameter("mlp.experts.down_proj", {config_.count, hidden_, ffn})};
    const std::uint64_t shared = config_.shared_intermediate_size;
    if (shared == 0) return;
    const std::string module = config_.shared_gate ? "mlp.shared_expert." : "mlp.shared_experts.";
    shared_gate_ = block_.linear_parameters(module + "gate_proj", hidden_, shared, false);
    shared_up_ = block_.linear_parameters(module + "up_proj", hidden_, shared, false);
    shared_down_ = block_.linear_parameters(module + "down_proj", shared, hidden_, false);
    if (config_.shared_gate)
        shared_mix_ = block_.linear_parameters("mlp.shared_expert_gate", hidden_, 1, false);
}

TensorId ExpertLayer::write(TensorId x) {
    const TensorId routed = routed_experts(x, route(x));
    if (config_.shared_intermediate_size == 0) return routed;
    return block_.residual_add("mlp.shared_experts.add", routed, shared_experts(x), hidden_);
}

/// Scores of all experts in fp32, and the weights of the chosen ones.
TensorId ExpertLayer::route(TensorId x) {
    const TensorId logits = block_.linear("mlp.gate", x, hidden_, config_.count, router_);
    const TensorId scores = block_.tensor("mlp.gate.scores", config_.count, TensorDType::fp32);
    const TensorId weights = block_.tensor("mlp.gate.weights", config_.per_token, TensorDType::fp32);
    block_.add({.name = "mlp.gate.top_k",
                .kind = OperatorKind::softmax,
                .inputs = {logits},
                .outputs = {weights, scores},
                .saved = {scores},
                .forward_flops = {.per_token = 10 * config_.count},
                .backward_flops = {.per_token = 10 * config_.count}});
    return weights;
}

/// One product an expert over the tokens that chose it.
TensorId ExpertLayer::grouped_linear(const std::string& name, TensorId x, std::uint64_t in, std::uint64_t out,
                                     Parameters weights) {
    const TensorId y = block_.tensor(name, config_.per_token * out);
    const std::uint64_t products = checked_product(
        config_.per_token, checked_product(in, out, "linear operations"), "linear operations");
    block_.add({.name = name,
                .kind = OperatorKind::linear,
                .inputs = {x},
                .outputs = {y},
                .saved = {x},
                .parameters = std::move(weights),
                .forward_flops = {.per_token = 2 * products},
                .backward_flops = {.per_token = 4 * products},
                .in_features = in,
                .out_features = out});
    return y;
}

/// Each token is copied once for every expert it goes to, and the results come back weighted.
TensorId ExpertLayer::routed_experts(TensorId x, TensorId weights) {
    const std::uint64_t k = config_.per_token, ffn = config_.intermediate_size;
    const TensorId permuted = block_.tensor("mlp.experts.permuted", k * hidden_);
    block_.add({.name = "mlp.experts.permute",
                .kind = OperatorKind::elementwise,
                .inputs = {x},
                .outputs = {permuted}});
    const TensorId gate_up = grouped_linear("mlp.experts.gate_up_proj", permuted, hidden_, 2 * ffn, gate_up_);
    const TensorId active = block_.tensor("mlp.experts.act", k * ffn);
    block_.add({.name = "mlp.experts.act",
                .kind = OperatorKind::gated_activation,
                .inputs = {gate_up},
                .outputs = {active},
                .saved = {gate_up},
                .forward_flops = {.per_token = 6 * k * ffn},
                .backward_flops = {.per_token = 12 * k * ffn},
                .function = function_});
    const TensorId down = grouped_linear("mlp.experts.down_proj", active, ffn, hidden_, down_);
    const TensorId out = block_.tensor("mlp.experts.out", hidden_);
    block_.add({.name = "mlp.experts.combine",
                .kind = OperatorKind::elementwise,
                .inputs = {down, weights},
                .outputs = {out},
                .saved = {down, weights},
                .forward_flops = {.per_token = 2 * k * hidden_},
                .backward_flops = {.per_token = 4 * k * hidden_}});
    return out;
}

TensorId ExpertLayer::shared_experts(TensorId x) {
    const std::uint64_t shared = config_.shared_intermediate_size;
    const TensorId gate = block_.linear("mlp.shared_experts.gate_proj", x, hidden_, shared, shared_gate_);
    const TensorId up = block_.linear("mlp.shared_experts.up_proj", x, hidden_, shared, shared_up_);
    const TensorId active =
        block_.gated_activation("mlp.shared_experts.act", gate, up, shared, function_, fused_);
    const TensorId down =
        block_.linear("mlp.shared_experts.down_proj", active, shared, hidden_, shared_down_);
    if (!config_.shared_gate) return down;
    const TensorId mix = block_.linear("mlp.shared_expert_gate", x, hidden_, 1, shared_mix_);
    const TensorId mixed = block_.tensor("mlp.shared_experts.mixed", hidden_);
    block_.add({.name = "mlp.shared_experts.mix",
                .kind = OperatorKind::multiply,
                .inputs = {down, mix},
                .outputs = {mixed},
                .saved = {down, mix},
                .forward_flops = {.per_token = hidden_},
                .backward_flops = {.per_token = 2 * hidden_}});
    return mixed;
}

}  // namespace zeroplan
