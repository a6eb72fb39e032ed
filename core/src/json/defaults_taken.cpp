#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "import/complete_batch.hpp"
#include "json/scenario_document.hpp"
#include "json/training_json.hpp"
#include "zeroplan/io.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

bool states(const json& document, const char* part, const char* key) {
    const auto found = document.find(part);
    return found != document.end() && found->is_object() && found->contains(key) && !(*found)[key].is_null();
}

/// Keys of `training` whose default decides memory or time; the second kind means nothing to a plain stack.
constexpr std::array general_keys{
    "engine", "zero_stage", "micro_batch_size", "gradient_accumulation_steps", "optimizer", "compute_dtype"};
constexpr std::array transformer_keys{"sequence_length", "attention", "recompute", "loss"};

std::string shown(const json& value) {
    if (value.is_number_unsigned()) return format_count(value.get<std::uint64_t>());
    return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

std::vector<std::string> defaults_taken(const ScenarioRequest& request, const Scenario& scenario) {
    ScenarioDocument merged = merge_scenario(request);
    complete_batch(merged, request.imported);
    const json& document = merged.json;
    const json training = training_to_json(scenario.training);
    std::vector<std::string> taken;
    const auto take = [&](const char* key, const char* meaning) {
        if (!states(document, "training", key))
            taken.push_back(fmt::format("{} {}{}", key, shown(training[key]), meaning));
    };
    for (const char* key : general_keys) take(key, "");
    if (scenario.model.batch == BatchKind::tokens) {
        for (const char* key : transformer_keys)
            take(key, std::string_view(key) == "sequence_length" ? " (the model's maximum)" : "");
        // An engine's own default, and what norms, activations and rotary embeddings keep hangs on it.
        take("kernels", scenario.training.kernels == Kernels::eager
                            ? " (PyTorch's own, which keep more activations; --set "
                              "/training/kernels=fused plans fused ones)"
                            : "");
    }
    if (!states(document, "cluster", "topology") && !states(document, "cluster", "gpu"))
        taken.push_back("topology " + scenario.cluster.topology);
    if (!states(document, "cluster", "nodes") && !states(document, "cluster", "gpus_used"))
        taken.push_back(fmt::format("nodes {}", scenario.cluster.nodes));
    return taken;
}

}  // namespace zeroplan
