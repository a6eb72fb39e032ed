#include <stdexcept>
#include <string_view>

#include <nlohmann/json.hpp>

#include "checkpoint.hpp"
#include "zeroplan/units.hpp"

namespace zeroplan::runner {
namespace {

using nlohmann::ordered_json;

std::string_view word_of(ActivationFunction function) {
    switch (function) {
        case ActivationFunction::none:
            return "none";
        case ActivationFunction::relu:
            return "relu";
        case ActivationFunction::gelu:
            return "gelu";
        case ActivationFunction::tanh:
            return "tanh";
        case ActivationFunction::silu:
        case ActivationFunction::squared_relu:
            break;
    }
    throw std::logic_error("a plain stack has no such activation");
}

ordered_json layer_of(const ModelSpec& model, const Block& block) {
    ordered_json layer;
    for (const Operator& op : model.block_kinds.at(block.kind).operators) {
        if (op.kind == OperatorKind::linear) {
            layer["linear"] = {op.in_features, op.out_features};
            layer["bias"] = op.parameters.size() == 2;
        } else if (op.kind == OperatorKind::activation) {
            layer["activation"] = word_of(op.function);
        }
    }
    return layer;
}

/// The model as a scenario states it: shapes alone tell neither activations nor loss.
std::string stack_json(const ModelSpec& model) {
    ordered_json layers = ordered_json::array();
    for (const Block& block : model.blocks) layers.push_back(layer_of(model, block));
    return ordered_json{{"layers", std::move(layers)},
                        {"loss", model.target_is_input ? "mse" : "cross_entropy"}}
        .dump();
}

}  // namespace

std::string safetensors_header(const ModelSpec& model) {
    // Values of __metadata__ are strings by the format.
    ordered_json header{{"__metadata__", {{"format", "pt"}, {"zeroplan_stack", stack_json(model)}}}};
    std::uint64_t offset = 0;
    for (const Parameter& parameter : model.parameters) {
        if (parameter.shared_with) continue;
        const std::uint64_t end =
            checked_sum(offset, checked_product(parameter.numel, sizeof(float), "checkpoint"), "checkpoint");
        header[parameter.name] = {
            {"dtype", "F32"}, {"shape", parameter.shape}, {"data_offsets", {offset, end}}};
        offset = end;
    }
    std::string text = header.dump();
    text.resize(round_up(text.size(), 8), ' ');  // the data begins aligned
    std::string result;
    for (int byte = 0; byte < 8; ++byte)  // its length, little-endian
        result += static_cast<char>(text.size() >> (8 * byte) & 0xff);
    return result + text;
}

}  // namespace zeroplan::runner
