#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

#include "core/json/error_of.hpp"
#include "engines/deepspeed_options.hpp"
#include "import/deepspeed_keys.hpp"
#include "json/training_json.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// `training` of engine deepspeed with `zero` in its zero_optimization and `more` beside it.
TrainingInput read_zero(const std::string& zero, const std::string& more = "") {
    return read_training(json::parse(R"({"engine": "deepspeed", "deepspeed": {"zero_optimization": {)" +
                                     zero + "}}" + more + "}"),
                         {"s.json", "/training"});
}

TEST(DeepSpeedWords, OffloadInTheObjectIsTheScenariosOffload) {
    const TrainingConfig config =
        read_zero(R"("stage": 3, "offload_optimizer": {"device": "cpu", "ratio": 0.5},
                     "offload_param": {"device": "nvme"})")
            .config;
    EXPECT_EQ(config.offload_optimizer, OffloadTarget::cpu);
    EXPECT_EQ(config.offload_parameters, OffloadTarget::nvme);
    EXPECT_DOUBLE_EQ(config.offload_fraction, 0.5);
}

TEST(DeepSpeedWords, OldFlagsStandForTheObjects) {
    const TrainingConfig config =
        read_zero(R"("stage": 3, "cpu_offload": true, "cpu_offload_param": true)").config;
    EXPECT_EQ(config.offload_optimizer, OffloadTarget::cpu);
    EXPECT_EQ(config.offload_parameters, OffloadTarget::cpu);
    EXPECT_THAT(
        error_of([] { read_zero(R"("stage": 3, "cpu_offload": true, "offload_optimizer": {})"); }).message(),
        HasSubstr("together"));
}

TEST(DeepSpeedWords, ParametersStayOnTheDeviceBelowStage3) {
    const TrainingConfig config =
        read_zero(R"("stage": 2, "cpu_offload": true, "cpu_offload_param": true)").config;
    EXPECT_EQ(config.offload_optimizer, OffloadTarget::cpu);
    EXPECT_EQ(config.offload_parameters, OffloadTarget::none);
    EXPECT_EQ(read_zero(R"("stage": 0, "cpu_offload": true)").config.offload_optimizer, OffloadTarget::none);
}

TEST(DeepSpeedWords, HpzIsTheSecondaryShardGroup) {
    EXPECT_EQ(read_zero(R"("stage": 3, "zero_hpz_partition_size": 8)").config.secondary_shard_group, 8U);
}

TEST(DeepSpeedWords, RefusesWhatContradictsTraining) {
    const Error error = error_of([] {
        read_zero(R"("stage": 3, "offload_optimizer": {"device": "cpu"})",
                  R"(, "offload_optimizer": "none")");
    });
    EXPECT_EQ(error.place().pointer, "/training/deepspeed/zero_optimization/offload_optimizer/device");
    EXPECT_NO_THROW(read_zero(R"("stage": 3, "cpu_offload": true)", R"(, "offload_optimizer": "cpu")"));
    EXPECT_EQ(error_of([] {
                  read_zero(R"("stage": 3, "zero_hpz_partition_size": 8)", R"(, "secondary_shard_group": 4)");
              })
                  .place()
                  .pointer,
              "/training/deepspeed/zero_optimization/zero_hpz_partition_size");
}

/// Fields of DeepSpeedZeroConfig (deepspeed/runtime/zero/config.py, edaa722), by their names and aliases.
constexpr const char* fields[] = {"stage",
                                  "contiguous_gradients",
                                  "reduce_scatter",
                                  "reduce_bucket_size",
                                  "use_multi_rank_bucket_allreduce",
                                  "allgather_partitions",
                                  "allgather_bucket_size",
                                  "overlap_comm",
                                  "load_from_fp32_weights",
                                  "elastic_checkpoint",
                                  "offload_param",
                                  "offload_optimizer",
                                  "zenflow",
                                  "sub_group_size",
                                  "cpu_offload_param",
                                  "cpu_offload_use_pin_memory",
                                  "cpu_offload",
                                  "stage3_prefetch_bucket_size",
                                  "stage3_param_persistence_threshold",
                                  "stage3_model_persistence_threshold",
                                  "stage3_max_live_parameters",
                                  "stage3_max_reuse_distance",
                                  "stage3_gather_16bit_weights_on_model_save",
                                  "stage3_module_granularity_threshold",
                                  "stage3_use_all_reduce_for_fetch_params",
                                  "stage3_allgather_sequential",
                                  "stage3_gather_fp16_weights_on_model_save",
                                  "ignore_unused_parameters",
                                  "legacy_stage1",
                                  "round_robin_gradients",
                                  "zero_hpz_partition_size",
                                  "zero_quantized_weights",
                                  "zero_quantized_nontrainable_weights",
                                  "zero_quantized_gradients",
                                  "zeropp_loco_param",
                                  "mics_shard_size",
                                  "mics_hierarchical_params_gather",
                                  "memory_efficient_linear",
                                  "pipeline_loading_checkpoint",
                                  "override_module_apply",
                                  "log_trace_cache_warnings",
                                  "enable_sanity_checks",
                                  "save_muon_momentum_buffer_in_memory",
                                  "leaf_module"};

TEST(DeepSpeedWords, KnowEveryFieldOfDeepSpeedsClass) {
    for (const char* field : fields) EXPECT_NE(find_zero_key(field), nullptr) << field;
    EXPECT_NE(find_zero_key("stage3_partition_stream_chunk_size"), nullptr);  // of older releases
}

TEST(DeepSpeedWords, ChecksTypesOfWhatThePlanDoesNotRead) {
    const auto refused = [](const char* zero) {
        Scenario scenario;
        scenario.training.engine = EngineKind::deepspeed;
        scenario.training.deepspeed_json = std::string(R"({"zero_optimization": {)") + zero + "}}";
        return error_of([&] { read_deepspeed_options(scenario); }).place().pointer;
    };
    EXPECT_EQ(refused(R"("enable_sanity_checks": 3)"),
              "/training/deepspeed/zero_optimization/enable_sanity_checks");
    EXPECT_EQ(refused(R"("stage3_partition_stream_chunk_size": "much")"),
              "/training/deepspeed/zero_optimization/stage3_partition_stream_chunk_size");
}

}  // namespace
}  // namespace zeroplan
