#include "json/restated_defaults.hpp"

#include <nlohmann/json.hpp>

#include "json/cluster_json.hpp"
#include "json/training_json.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

/// Erases `key` if the default that takes its place, `member` without `stated`, is the same.
template <typename Stated, typename Member>
void drop_dtype_like(json& training, const char* key, const TrainingInput& input,
                     Stated TrainingInput::*stated, Member TrainingConfig::*member) {
    if (!(input.*stated)) return;
    TrainingInput without = input;
    (without.*stated).reset();
    if (with_engine_defaults(without).*member == with_engine_defaults(input).*member) training.erase(key);
}

void drop_engine_defaults(json& training, const TrainingInput& input) {
    using In = TrainingInput;
    using Out = TrainingConfig;
    drop_dtype_like(training, "parameter_dtype", input, &In::parameter_dtype, &Out::parameter_dtype);
    drop_dtype_like(training, "master_dtype", input, &In::master_dtype, &Out::master_dtype);
    drop_dtype_like(training, "gradient_dtype", input, &In::gradient_dtype, &Out::gradient_dtype);
    drop_dtype_like(training, "reduce_dtype", input, &In::reduce_dtype, &Out::reduce_dtype);
    drop_dtype_like(training, "kernels", input, &In::kernels, &Out::kernels);
    if (input.config.virtual_pipeline == 1 && input.pipeline_schedule == PipelineSchedule::one_f_one_b)
        training.erase("pipeline_schedule");
    if (input.config.fsdp.gradient_sync) {
        TrainingInput without = input;
        without.config.fsdp.gradient_sync.reset();
        if (with_engine_defaults(without).fsdp == input.config.fsdp) training["fsdp"].erase("gradient_sync");
    }
}

void drop_degrees(json& training, const TrainingInput& input, const ClusterSpec& cluster) {
    const TrainingConfig config = with_engine_defaults(input);
    const std::uint64_t inner = config.tensor_parallel * config.pipeline_parallel * config.context_parallel;
    const std::uint64_t data_parallel = input.data_parallel.value_or(cluster.gpus_used / inner);
    if (data_parallel * inner == cluster.gpus_used) training.erase("data_parallel");
    const std::uint64_t sharing = data_parallel * config.context_parallel;
    if (input.shard_group == (config.zero_stage == 0 ? 1 : sharing)) training.erase("shard_group");
    if (input.expert_tensor_parallel == config.tensor_parallel) training.erase("expert_tensor_parallel");
}

}  // namespace

void drop_restated_defaults(json& document, const std::string& file) {
    const auto training = document.find("training");
    if (training == document.end()) return;
    try {
        const TrainingInput input = read_training(*training, {file, "/training"});
        const ClusterSpec cluster =
            read_cluster(document.value("cluster", json::object()), {file, "/cluster"});
        json reduced = *training;
        drop_engine_defaults(reduced, input);
        drop_degrees(reduced, input, cluster);
        *training = std::move(reduced);
    } catch (const Error&) {
        return;
    }
}

}  // namespace zeroplan
