#include "import/json_looks.hpp"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

namespace zeroplan {
namespace {

constexpr std::string_view as_model = "give it with --model: zeroplan plan --model FILE",
                           as_scenario = "give it with --scenario: zeroplan plan --scenario FILE",
                           as_deepspeed = "give it with --deepspeed: zeroplan plan --deepspeed FILE";
constexpr std::string_view a_deepspeed_file = "a DeepSpeed configuration";
constexpr std::array<std::string_view, 6> deepspeed_marks{"zero_optimization",
                                                          "train_batch_size",
                                                          "train_micro_batch_size_per_gpu",
                                                          "gradient_accumulation_steps",
                                                          "fp16",
                                                          "bf16"};
/// The first that has its key: a report has a model, too.
constexpr std::array looks{
    JsonLook{"model_type", "the config.json of a model", as_model},
    JsonLook{"architectures", "the config.json of a model", as_model},
    JsonLook{"weight_map", "the index of a checkpoint", as_model},
    JsonLook{"kind", "a report of zeroplan",
             "zeroplan compare takes two of them; its part \"scenario\" is what --scenario takes"},
    JsonLook{"training", "a scenario", as_scenario},
    JsonLook{"cluster", "a scenario", as_scenario},
    JsonLook{"model", "a scenario", as_scenario},
    JsonLook{"gpus_per_node", "a topology", "give it with --topology: zeroplan plan --topology FILE"},
    JsonLook{"zero_optimization", a_deepspeed_file, as_deepspeed},
    JsonLook{"train_batch_size", a_deepspeed_file, as_deepspeed},
    JsonLook{"train_micro_batch_size_per_gpu", a_deepspeed_file, as_deepspeed},
    JsonLook{"device_traces", "a PyTorch memory snapshot, which this version does not read",
             "give the out-of-memory message to zeroplan import instead"}};

}  // namespace

const JsonLook* json_look(const nlohmann::json& object) {
    for (const JsonLook& look : looks)
        if (object.is_object() && object.contains(look.key)) return &look;
    return nullptr;
}

bool is_deepspeed(const nlohmann::json& object) {
    return object.is_object() && std::any_of(deepspeed_marks.begin(), deepspeed_marks.end(),
                                             [&](std::string_view key) { return object.contains(key); });
}

}  // namespace zeroplan
