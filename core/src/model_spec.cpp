#include "zeroplan/model_spec.hpp"

#include <algorithm>

namespace zeroplan {
namespace {

template <typename Keep>
std::uint64_t count(const std::vector<Parameter>& parameters, Keep keep) {
    std::uint64_t sum = 0;
    for (const Parameter& parameter : parameters)
        if (!parameter.shared_with && keep(parameter))
            sum = checked_sum(sum, parameter.numel, "parameter count");
    return sum;
}

}  // namespace

std::uint64_t ModelSpec::parameter_count() const {
    return count(parameters, [](const Parameter&) { return true; });
}

std::uint64_t ModelSpec::trainable_parameter_count() const {
    return count(parameters, [](const Parameter& parameter) { return parameter.trainable; });
}

std::uint64_t ModelSpec::active_parameter_count() const {
    if (!experts) return parameter_count();
    const std::uint64_t routed = count(parameters, [](const Parameter& parameter) {
        return parameter.name.find(".experts.") != std::string::npos;
    });
    return parameter_count() - routed + routed / experts->count * experts->per_token;
}

std::string_view to_string(OperatorKind kind) {
    switch (kind) {
        case OperatorKind::embedding:
            return "embedding";
        case OperatorKind::linear:
            return "linear";
        case OperatorKind::norm:
            return "norm";
        case OperatorKind::rope:
            return "rope";
        case OperatorKind::attention:
            return "attention";
        case OperatorKind::attention_scores:
            return "attention_scores";
        case OperatorKind::softmax:
            return "softmax";
        case OperatorKind::attention_values:
            return "attention_values";
        case OperatorKind::activation:
            return "activation";
        case OperatorKind::gated_activation:
            return "gated_activation";
        case OperatorKind::multiply:
            return "multiply";
        case OperatorKind::residual_add:
            return "residual_add";
        case OperatorKind::dropout:
            return "dropout";
        case OperatorKind::cast:
            return "cast";
        case OperatorKind::elementwise:
            return "elementwise";
        case OperatorKind::cross_entropy:
            return "cross_entropy";
        case OperatorKind::mean_squared_error:
            return "mean_squared_error";
    }
    return "?";
}

std::uint64_t elements(const Extent& extent, std::uint64_t sequences, std::uint64_t sequence_length) {
    const std::uint64_t tokens = checked_product(sequences, sequence_length, "tokens of a micro-batch");
    const std::uint64_t linear = checked_product(extent.per_token, tokens, "activation elements");
    const std::uint64_t pairs =
        extent.per_token_pair == 0
            ? 0
            : checked_product(checked_product(extent.per_token_pair, tokens, "attention elements"),
                              sequence_length, "attention elements");
    const std::uint64_t fixed = checked_product(extent.per_sequence, sequences, "activation elements");
    return checked_sum(checked_sum(extent.constant, fixed), checked_sum(linear, pairs));
}

double operations(const Flops& flops, std::uint64_t sequences, std::uint64_t sequence_length) {
    const double length = static_cast<double>(sequence_length),
                 tokens = static_cast<double>(sequences) * length;
    return static_cast<double>(sequences) * static_cast<double>(flops.per_sequence) +
           tokens *
               (static_cast<double>(flops.per_token) + static_cast<double>(flops.per_token_pair) * length);
}

DType resolve(TensorDType dtype, DType compute) {
    switch (dtype) {
        case TensorDType::compute:
            return compute;
        case TensorDType::fp32:
            return DType::fp32;
        case TensorDType::int64:
            return DType::int64;
        case TensorDType::mask:
            return DType::uint8;
    }
    return compute;
}

}  // namespace zeroplan
