#include "json/training_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/json/error_of.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TrainingInput read(const char* text) {
    return read_training(json::parse(text), {"s.json", "/training"});
}
TrainingConfig defaults(const char* text) {
    return with_engine_defaults(read(text));
}

TEST(ReadTraining, TakesEveryKeyOfTheFormat) {
    const TrainingConfig config = defaults(R"({
        "engine": "megatron", "engine_version": "core 0.9", "zero_stage": 1, "data_parallel": 4, "shard_group": 2,
        "secondary_shard_group": 1, "tensor_parallel": 8, "pipeline_parallel": 4, "virtual_pipeline": 2,
        "context_parallel": 2, "expert_parallel": 2, "expert_tensor_parallel": 1, "sequence_parallel": true,
        "pipeline_schedule": "interleaved", "micro_batch_size": 3, "gradient_accumulation_steps": 5,
        "sequence_length": 4096, "compute_dtype": "fp8", "parameter_dtype": "bf16", "master_dtype": "fp32",
        "gradient_dtype": "fp32", "reduce_dtype": "bf16", "optimizer": "adamw_8bit", "optimizer_state_dtype": "uint8",
        "optimizer_implementation": "foreach", "recompute": "selective_layer", "recompute_every": 2,
        "recompute_modules": ["mlp", "norm"], "attention": "sdpa", "loss": "vocab_parallel", "kernels": "compiled",
        "offload_optimizer": "nvme", "offload_parameters": "cpu", "offload_activations": "cpu",
        "offload_gradients": "cpu", "fp8": {"recipe": "mxfp8", "all_gather": true}, "async_tensor_parallel": true,
        "pipeline_layout": [0, 1, 2, 3], "offload_fraction": 0.5,
        "adapter": {"kind": "lora", "rank": 8, "targets": "all_linear", "base_dtype": "bf16"}, "freeze": ["wte*"],
        "megatron": {"bucket_size": 40000000}, "moe": {"capacity_factor": null, "load_imbalance": 1.2}})");
    EXPECT_EQ(config.engine, EngineKind::megatron);
    EXPECT_EQ(config.compute_dtype, DType::fp8);
    EXPECT_EQ(config.reduce_dtype, DType::bf16);
    EXPECT_EQ(config.optimizer, Optimizer::adamw_8bit);
    EXPECT_EQ(config.optimizer_state_dtype, DType::uint8);
    EXPECT_EQ(config.recompute, Recompute::selective_layer);
    EXPECT_EQ(config.recompute_modules, (std::vector<std::string>{"mlp", "norm"}));
    EXPECT_EQ(config.pipeline_layout, (std::vector<std::uint64_t>{0, 1, 2, 3}));
    EXPECT_EQ(config.offload_fraction, 0.5);
    EXPECT_EQ(config.megatron_json, R"({"bucket_size":40000000})");
    EXPECT_EQ(config.engine_version, "core 0.9");
    EXPECT_TRUE(config.async_tensor_parallel);
}

TEST(ReadTraining, GivesBackWhatWasWritten) {
    for (
        const char* text :
        {"{}",
         R"({"engine": "fsdp2", "fsdp": {"reshard_after_forward": 8, "wrap": "layer+embedding+output"}})",
         R"({"engine": "fsdp1", "fsdp": {"reshard_after_forward": false, "backward_prefetch": "none",
              "limit_all_gathers": true}})",
         R"({"engine": "deepspeed", "deepspeed": {"zero_optimization": {"stage": 2, "overlap_comm": true}}})",
         R"({"compute_dtype": "fp32", "optimizer": "sgd", "fsdp": {"gradient_sync": "always"}})"}) {
        const TrainingConfig config = defaults(text);
        const json written = json(training_to_json(config));
        TrainingConfig again = with_engine_defaults(read_training(written, {}));
        again.data_parallel = config.data_parallel;
        again.shard_group = config.shard_group;
        again.expert_tensor_parallel = config.expert_tensor_parallel;
        again.sequence_length = config.sequence_length;
        EXPECT_EQ(again, config) << written.dump();
    }
}

TEST(ReadTraining, NamesTheNearestKey) {
    const Error error = error_of([] { read(R"({"zero_stag": 3})"); });
    EXPECT_EQ(error.place(), (ErrorPlace{"s.json", "/training/zero_stag"}));
    EXPECT_THAT(error.message(), HasSubstr("unknown key \"zero_stag\""));
    EXPECT_THAT(error.hint(), HasSubstr("zero_stage"));
}

TEST(ReadTraining, ListsTheWordsForAWrongOne) {
    const Error error = error_of([] { read(R"({"optimizer": "adam_w"})"); });
    EXPECT_EQ(error.place().pointer, "/training/optimizer");
    EXPECT_THAT(error.message(), HasSubstr("adam_w"));
    EXPECT_THAT(error.hint(), HasSubstr("did you mean \"adamw\"?"));
    EXPECT_THAT(error.hint(), HasSubstr("sgd, sgd_momentum, adam, adamw"));
    EXPECT_THAT(error_of([] { read(R"({"compute_dtype": "float32"})"); }).hint(),
                HasSubstr("fp32, tf32, fp16, bf16, fp8"));
    EXPECT_THAT(error_of([] { read(R"({"master_dtype": "bf16"})"); }).hint(), HasSubstr("fp32, none"));
    EXPECT_THAT(error_of([] { read(R"({"offload_gradients": "nvme"})"); }).hint(), HasSubstr("none, cpu"));
}

TEST(ReadTraining, RefusesNumbersThatCannotBe) {
    for (const char* value : {"-1", "0", "1.5", "1e18", "\"8\"", "true", "[8]", "99999999999999999999"}) {
        const std::string text = std::string(R"({"micro_batch_size": )") + value + "}";
        const Error error = error_of([&] { read(text.c_str()); });
        EXPECT_EQ(error.code(), ErrorCode::invalid_input) << value;
        EXPECT_EQ(error.place().pointer, "/training/micro_batch_size") << value;
    }
    EXPECT_EQ(error_of([] { read(R"({"zero_stage": 4})"); }).place().pointer, "/training/zero_stage");
    EXPECT_EQ(error_of([] { read(R"({"offload_fraction": 1.5})"); }).place().pointer,
              "/training/offload_fraction");
    EXPECT_EQ(error_of([] { read(R"({"pipeline_layout": [1, -1]})"); }).place().pointer,
              "/training/pipeline_layout/1");
    EXPECT_EQ(error_of([] { read("[]"); }).place().pointer, "/training");
}

TEST(ReadTraining, RefusesObjectsOfOtherEngines) {
    EXPECT_THAT(error_of([] { read(R"({"engine": "native", "deepspeed": {}})"); }).message(),
                HasSubstr("\"deepspeed\" has no meaning for engine native"));
    EXPECT_THAT(error_of([] { read(R"({"engine": "fsdp2", "megatron": {}})"); }).hint(),
                HasSubstr("megatron, megatron_fsdp"));
    EXPECT_EQ(error_of([] { read(R"({"fsdp": {"wrap": "layer"}})"); }).place().pointer,
              "/training/fsdp/wrap");
}

TEST(ReadTraining, ReadsPyTorchsAllocator) {
    const TrainingConfig config = defaults(
        R"({"engine": "fsdp2", "allocator": {"expandable_segments": true, "max_split_size_bytes": 134217728}})");
    EXPECT_EQ(config.allocator, (CachingAllocatorOptions{true, 134217728}));
    EXPECT_EQ(training_to_json(config)["allocator"].dump(),
              R"({"expandable_segments":true,"max_split_size_bytes":134217728})");
    EXPECT_FALSE(training_to_json(defaults(R"({"engine": "fsdp2"})")).contains("allocator"));
}

TEST(ReadTraining, RefusesAnAllocatorThatPyTorchRefuses) {
    // More than 20 MiB, as CUDAAllocatorConfig demands.
    const Error error =
        error_of([] { read(R"({"engine": "ddp", "allocator": {"max_split_size_bytes": 20971520}})"); });
    EXPECT_EQ(error.place().pointer, "/training/allocator/max_split_size_bytes");
    for (const char* engine : {"native", "llm_c"}) {
        const std::string text =
            std::string(R"({"engine": ")") + engine + R"(", "allocator": {"expandable_segments": true}})";
        const Error refused = error_of([&] { read(text.c_str()); });
        EXPECT_EQ(refused.place().pointer, "/training/allocator");
        EXPECT_THAT(refused.message(), HasSubstr(std::string("no meaning for engine ") + engine));
        EXPECT_THAT(refused.hint(), HasSubstr("fsdp2"));
    }
}

TEST(ReadTraining, MegatronFsdpsStrategyIsTheStage) {
    const auto stage = [](const char* text) { return with_engine_defaults(read(text)).zero_stage; };
    EXPECT_EQ(stage(R"({"engine": "megatron_fsdp"})"), 3U);
    EXPECT_EQ(
        stage(R"({"engine": "megatron_fsdp", "megatron": {"data_parallel_sharding_strategy": "optim"}})"),
        1U);
    EXPECT_EQ(
        error_of([] {
            read(R"({"engine": "megatron_fsdp", "megatron": {"data_parallel_sharding_strategy": "all"}})");
        })
            .place()
            .pointer,
        "/training/megatron/data_parallel_sharding_strategy");
    EXPECT_THROW(stage(R"({"engine": "megatron_fsdp", "zero_stage": 3,
                           "megatron": {"data_parallel_sharding_strategy": "optim"}})"),
                 Error);
    EXPECT_EQ(
        error_of([] { read(R"({"engine": "megatron_fsdp", "fsdp": {"wrap": "layer"}})"); }).place().pointer,
        "/training/fsdp/wrap");
}

TEST(ReadTraining, ChecksTheObjectsInside) {
    EXPECT_EQ(error_of([] { read(R"({"adapter": {"rank": 8, "targets": []}})"); }).place().pointer,
              "/training/adapter/kind");
    EXPECT_EQ(error_of([] { read(R"({"fp8": {"recipe": "blockwise"}})"); }).place().pointer,
              "/training/fp8/recipe");
    EXPECT_EQ(error_of([] { read(R"({"moe": {"load_imbalance": 0.5}})"); }).place().pointer,
              "/training/moe/load_imbalance");
    EXPECT_EQ(error_of([] { read(R"({"engine": "fsdp2", "fsdp": {"reshard": true}})"); }).place().pointer,
              "/training/fsdp/reshard");
}

}  // namespace
}  // namespace zeroplan
