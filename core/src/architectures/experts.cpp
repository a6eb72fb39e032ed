#include "architectures/experts.hpp"

#include "zeroplan/units.hpp"

namespace zeroplan {

using TensorId = BlockBuilder::TensorId;

ExpertLayer::ExpertLayer(BlockBuilder& block, const ExpertConfig& config, const DecoderNames& names,
                         std::uint64_t hidden, ActivationFunction function, bool fused)
    : block_(block),
      config_(config),
      hidden_(hidden),
      function_(function),
      fused_(fused),
      router_name_(names.experts + names.router),
      routed_name_(names.experts + "experts."),
      shared_name_(names.experts + (!names.shared_experts.empty() ? names.shared_experts
                                    : config.shared_gate          ? "shared_expert"
                                                                  : "shared_experts")),
      routed_first_(names.routed_experts_first) {}

/// In registration order; names as in transformers 5, which stacks the routed experts.
void ExpertLayer::declare() {
    if (routed_first_) declare_routed();
    declare_router();
    if (!routed_first_) declare_routed();
    if (config_.shared_intermediate_size != 0) declare_shared();
}

void ExpertLayer::declare_router() {
    router_ = block_.linear_parameters(router_name_, hidden_, config_.count, config_.biases);
    // Balances the experts' load step by step, without a gradient (DeepSeek-V3's report, 2.1.2).
    if (config_.correction_bias)
        block_.untrained_parameter(router_name_ + ".e_score_correction_bias", {config_.count});
}

/// A matrix, and a bias where the family has them, for each expert.
ExpertLayer::Parameters ExpertLayer::stacked(const std::string& name, std::uint64_t in, std::uint64_t out) {
    Parameters ids{block_.parameter(routed_name_ + name, config_.transposed
                                                             ? std::vector{config_.count, in, out}
                                                             : std::vector{config_.count, out, in})};
    if (config_.biases) ids.push_back(block_.parameter(routed_name_ + name + "_bias", {config_.count, out}));
    return ids;
}

void ExpertLayer::declare_routed() {
    gate_up_ = stacked("gate_up_proj", hidden_, 2 * config_.intermediate_size);
    down_ = stacked("down_proj", config_.intermediate_size, hidden_);
}

void ExpertLayer::declare_shared() {
    const std::uint64_t shared = config_.shared_intermediate_size;
    shared_gate_ = block_.linear_parameters(shared_name_ + ".gate_proj", hidden_, shared, false);
    shared_up_ = block_.linear_parameters(shared_name_ + ".up_proj", hidden_, shared, false);
    shared_down_ = block_.linear_parameters(shared_name_ + ".down_proj", shared, hidden_, false);
    if (config_.shared_gate)
        shared_mix_ = block_.linear_parameters(shared_name_ + "_gate", hidden_, 1, false);
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
    const std::uint64_t ffn = config_.intermediate_size;
    const TensorId gate_up =
        grouped_linear("mlp.experts.gate_up_proj", permuted(x, weights), hidden_, 2 * ffn, gate_up_);
    return combined(grouped_linear("mlp.experts.down_proj", activated(gate_up), ffn, hidden_, down_),
                    weights);
}

TensorId ExpertLayer::permuted(TensorId x, TensorId weights) {
    const std::uint64_t width = config_.per_token * hidden_;
    const TensorId out = block_.tensor("mlp.experts.permuted", width);
    Operator op{
        .name = "mlp.experts.permute", .kind = OperatorKind::elementwise, .inputs = {x}, .outputs = {out}};
    if (config_.weighs_input) {
        op.inputs.push_back(weights);
        op.saved = op.inputs;
        op.forward_flops = {.per_token = width};
        op.backward_flops = {.per_token = 3 * width};
    }
    block_.add(std::move(op));
    return out;
}

TensorId ExpertLayer::activated(TensorId gate_up) {
    const std::uint64_t width = config_.per_token * config_.intermediate_size;
    const TensorId out = block_.tensor("mlp.experts.act", width);
    Operator op{.name = "mlp.experts.act",
                .kind = OperatorKind::gated_activation,
                .inputs = {gate_up},
                .outputs = {out},
                .saved = {gate_up},
                .forward_flops = {.per_token = 6 * width},
                .backward_flops = {.per_token = 12 * width},
                .function = function_};
    // GptOssExperts writes (up + 1) · gate · sigmoid(α · gate) in single products: the clamped gate, its
    // sigmoid, the product of both and up + 1 are kept beside what was clamped.
    if (config_.clamped && !fused_)
        for (const char* kept : {"gate", "sigmoid", "glu", "up"}) {
            op.outputs.push_back(block_.add_tensor({.name = std::string("mlp.experts.act.") + kept,
                                                    .extent = {.per_token = width},
                                                    .needs_gradient = false}));
            op.saved.push_back(op.outputs.back());
        }
    block_.add(std::move(op));
    return out;
}

TensorId ExpertLayer::combined(TensorId down, TensorId weights) {
    const std::uint64_t width = config_.per_token * hidden_;
    const TensorId out = block_.tensor("mlp.experts.out", hidden_);
    Operator op{.name = "mlp.experts.combine",
                .kind = OperatorKind::elementwise,
                .inputs = {down},
                .outputs = {out},
                .forward_flops = {.per_token = width},
                .backward_flops = {.per_token = width}};
    if (!config_.weighs_input) {
        op.inputs.push_back(weights);
        op.saved = op.inputs;
        op.forward_flops = {.per_token = 2 * width};
        op.backward_flops = {.per_token = 4 * width};
    }
    block_.add(std::move(op));
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
