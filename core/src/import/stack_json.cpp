#include "import/stack_json.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "json/pointer.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

constexpr std::uint64_t most_features = 1ULL << 32, most_layers = 100'000;

ActivationFunction read_activation(const ObjectReader& layer) {
    const std::string word = layer.string("activation").value_or("none");
    if (word == "none") return ActivationFunction::none;
    if (word == "relu") return ActivationFunction::relu;
    if (word == "gelu") return ActivationFunction::gelu;
    if (word == "tanh") return ActivationFunction::tanh;
    static constexpr std::string_view known[] = {"none", "relu", "gelu", "tanh"};
    layer.fail_unknown_word("activation", word, known);
}

StackLayer read_layer(const ObjectReader& layer) {
    layer.allow_only({"linear", "bias", "activation"});
    const auto widths = layer.integers("linear", 1, most_features);
    if (!widths || widths->size() != 2)
        layer.fail("linear", "a layer needs \"linear\": [features in, features out]");
    return {.in = (*widths)[0],
            .out = (*widths)[1],
            .bias = layer.boolean("bias").value_or(true),
            .activation = read_activation(layer)};
}

std::vector<StackLayer> read_layers(const ObjectReader& holder) {
    const json* list = holder.find("layers");
    if (list == nullptr || !list->is_array())
        holder.fail("layers", "\"layers\" must be a list", R"(for example [{"linear": [100, 100]}])");
    if (list->size() > most_layers)
        holder.fail("layers", fmt::format("{} layers are more than {}", list->size(), most_layers));
    std::vector<StackLayer> layers;
    const ErrorPlace place = holder.place("layers");
    for (const json& layer : *list)
        layers.push_back(read_layer(
            ObjectReader(layer, {place.file, child_pointer(place.pointer, std::to_string(layers.size()))})));
    return layers;
}

}  // namespace

ModelSpec read_stack(const ConfigObject& stack, const std::string& name) {
    // "defaults" is the job that a preset comes with: the scenario's reader takes it, see
    // scenario_document.cpp.
    stack.config().allow_only({"layers", "loss", "description", "defaults"});
    if (stack.overrides()) stack.overrides()->allow_only({"preset", "file", "layers", "loss"});
    const std::vector<StackLayer> layers = read_layers(stack.holder("layers"));
    const auto loss = stack.string({"loss"});
    if (!loss)
        stack.fail({"layers"}, "a stack needs a \"loss\"", "add \"loss\": \"mse\" or \"cross_entropy\"");
    try {
        return build_plain_stack(name, layers, *loss);
    } catch (const Error& error) {
        throw error.in_file(stack.holder("layers").place().file);
    }
}

}  // namespace zeroplan
