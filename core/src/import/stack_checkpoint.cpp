#include "import/stack_checkpoint.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "import/config_object.hpp"
#include "import/stack_json.hpp"
#include "json/parse.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

const CheckpointTensor* find(const CheckpointHeader& checkpoint, const std::string& name) {
    const auto found = checkpoint.tensors.find(name);
    return found == checkpoint.tensors.end() ? nullptr : &found->second;
}

/// {"linear": [in, out], "bias": …} of every layers.N.linear.weight, which is [out, in], as
/// torch.nn.Linear's.
json layers_by_shape(const CheckpointHeader& checkpoint) {
    json layers = json::array();
    for (;;) {
        const std::string linear = fmt::format("layers.{}.linear", layers.size());
        const CheckpointTensor* weight = find(checkpoint, linear + ".weight");
        if (weight == nullptr || weight->shape.size() != 2) return layers;
        layers.push_back({{"linear", {weight->shape[1], weight->shape[0]}},
                          {"bias", find(checkpoint, linear + ".bias") != nullptr}});
    }
}

/// The only loss that the shapes allow, or the tutorial's.
std::string loss_by_shape(const json& layers) {
    return layers.front()["linear"][0] == layers.back()["linear"][1] ? "mse" : "cross_entropy";
}

}  // namespace

std::optional<ModelSpec> read_stack_checkpoint(const CheckpointHeader& checkpoint, const std::string& name,
                                               const ObjectReader& model) {
    const std::string file = checkpoint.path.string();
    if (!checkpoint.stack.empty()) {
        const json described = parse_json(checkpoint.stack, file);
        return read_stack(ConfigObject(ObjectReader(described, {file, "/__metadata__"}), model), name);
    }
    json layers = layers_by_shape(checkpoint);
    if (layers.empty()) return std::nullopt;
    const std::string loss = loss_by_shape(layers);
    const json inferred{{"layers", std::move(layers)}, {"loss", loss}};
    ModelSpec stack = read_stack(ConfigObject(ObjectReader(inferred, {file, ""}), model), name);
    if (!model.has("layers"))
        stack.notes.push_back(
            fmt::format("the checkpoint does not say what stands between its linears, nor its loss: no "
                        "activation{} is assumed",
                        model.has("loss") ? "" : " and " + loss));
    return stack;
}

}  // namespace zeroplan
