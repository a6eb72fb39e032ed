#include "json/adapter_json.hpp"

#include <nlohmann/json.hpp>

#include "architectures/adapters.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

ParameterStorage storage_of(const std::string& word) {
    if (word == "nf4") return ParameterStorage::nf4;
    if (word == "bf16") return ParameterStorage::bf16;
    if (word == "fp16") return ParameterStorage::fp16;
    return word == "fp32" ? ParameterStorage::fp32 : ParameterStorage::engine;
}

/// The reader of `training.adapter` has checked the object.
AdapterOptions options_of(const std::string& text) {
    const json adapter = json::parse(text);
    AdapterOptions options{.rank = adapter.at("rank").get<std::uint64_t>(), .targets = {}};
    const json& targets = adapter.at("targets");
    options.all_linear = targets.is_string();
    if (!options.all_linear) options.targets = targets.get<std::vector<std::string>>();
    const bool quantised = adapter.at("kind") == "qlora";
    options.base_storage = storage_of(adapter.value("base_dtype", quantised ? "nf4" : ""));
    return options;
}

}  // namespace

ModelSpec as_trained(ModelSpec model, const TrainingConfig& training) {
    if (training.engine == EngineKind::native) return model;  // it refuses both by itself
    if (!training.adapter_json.empty()) apply_adapter(model, options_of(training.adapter_json));
    freeze_parameters(model, training.freeze);
    return model;
}

}  // namespace zeroplan
