#include "import/choose_family.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "import/config_other.hpp"
#include "nearest.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

std::vector<std::string_view> built_model_types() {
    std::vector<std::string_view> built;
    for (const ConfigFamily& family : config_families()) built.push_back(family.model_type);
    for (const OtherFamily& family : other_families()) built.push_back(family.model_type);
    return built;
}

/// Where nothing says which family it is, or a class that isn't built.
std::string name_the_family() {
    return fmt::format(
        "give the model_type of its config.json (built are {}), or model_type llama or gpt with "
        "our own keys",
        fmt::join(built_model_types(), ", "));
}

/// What families that aren't built are most like, where their names don't say so.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kin{{{"granitemoe", "mixtral"},
                                                                            {"llama4", "llama4_text"},
                                                                            {"qwen3_next", "qwen3_moe"},
                                                                            {"xlm-roberta", "roberta"},
                                                                            {"electra", "bert"},
                                                                            {"mamba2", "mamba"},
                                                                            {"umt5", "mt5"}}};

std::optional<std::string> nearest_built(std::string_view model_type,
                                         std::span<const std::string_view> built) {
    const auto found =
        std::find_if(kin.begin(), kin.end(), [&](const auto& entry) { return entry.first == model_type; });
    if (found != kin.end()) return std::string(found->second);
    if (const auto near = nearest(model_type, built)) return std::string(*near);
    return std::nullopt;
}

[[noreturn]] void refuse_model_type(const ConfigObject& config, const std::string& model_type) {
    const auto unsupported = unsupported_model_types();
    const std::vector<std::string_view> built = built_model_types();
    const std::string list = fmt::format("built are {}", fmt::join(built, ", "));
    const bool exists = std::find(unsupported.begin(), unsupported.end(), model_type) != unsupported.end();
    const auto near = nearest_built(model_type, built);
    const std::string way_out =
        "; if its tensors are named like Llama's or GPT-2's, give its .safetensors file instead of "
        "config.json, "
        "else describe a decoder like it with model_type gpt or llama and our extra keys (mlp, "
        "position_embedding, normalization, linear_bias)";
    config.fail({"model_type"},
                exists ? fmt::format("models of the family \"{}\" are not modelled", model_type)
                       : fmt::format("unknown model_type \"{}\"", model_type),
                fmt::format("{}{}{}",
                            !near    ? ""
                            : exists ? fmt::format("the nearest that is built is \"{}\"; ", *near)
                                     : fmt::format("did you mean \"{}\"? ", *near),
                            list, way_out),
                ErrorCode::not_supported);
}

}  // namespace

std::string first_architecture(const ConfigObject& config) {
    const json* list = config.holder("architectures").find("architectures");
    if (list == nullptr || !list->is_array() || list->empty() || !list->front().is_string()) return {};
    return list->front().get<std::string>();
}

const ConfigFamily& choose_family(const ConfigObject& config) {
    if (const auto model_type = config.string({"model_type"})) {
        if (const ConfigFamily* family = find_config_family(*model_type)) return *family;
        refuse_model_type(config, *model_type);
    }
    const std::string architecture = first_architecture(config);
    if (const ConfigFamily* family = find_family_of_class(architecture)) return *family;
    if (!architecture.empty())
        config.fail({"architectures"},
                    fmt::format("models of the class \"{}\" are not modelled", architecture),
                    name_the_family(), ErrorCode::not_supported);
    config.fail({}, "no model_type is given: which kind of model is this?", name_the_family());
}

}  // namespace zeroplan
