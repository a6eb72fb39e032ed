#include <gmock/gmock.h>

#include "core/import/import_file.hpp"
#include "core/json/error_of.hpp"

namespace zeroplan {
namespace {

using testing::HasSubstr;

Import import_yaml(const std::string& text) {
    return import_accelerate(text, "config.yaml");
}

TEST(AccelerateImport, ReadsFsdp1) {
    const Import import = import_file("accelerate/fsdp1_full_shard.yaml");
    EXPECT_EQ(stated(import, "/training/engine"), "\"fsdp1\"");
    EXPECT_EQ(stated(import, "/training/zero_stage"), "3");
    EXPECT_EQ(stated(import, "/training/compute_dtype"), "\"bf16\"");
    EXPECT_EQ(stated(import, "/training/reduce_dtype"), "\"bf16\"");
    EXPECT_EQ(stated(import, "/training/fsdp/backward_prefetch"), "\"pre\"");
    EXPECT_EQ(stated(import, "/training/offload_parameters"), "");
    EXPECT_EQ(import.figure("world_size"), 16);  // of both machines
    EXPECT_EQ(stated(import, "/cluster/nodes"), "2");
    EXPECT_EQ(stated(import, "/cluster/gpus_per_node"), "8");
    EXPECT_FALSE(import.rejected());
}

TEST(AccelerateImport, ReadsFsdp2) {
    const Import import = import_file("accelerate/fsdp2_reshard.yaml");
    EXPECT_EQ(stated(import, "/training/engine"), "\"fsdp2\"");
    EXPECT_EQ(stated(import, "/training/zero_stage"), "3");
    EXPECT_EQ(stated(import, "/training/recompute"), "\"full\"");
    EXPECT_EQ(stated(import, "/cluster/gpus_used"), "6");
    EXPECT_EQ(stated(import_yaml("distributed_type: FSDP\nnum_processes: 2\nfsdp_config:\n  fsdp_version: "
                                 "2\n  reshard_after_forward: 'no'\n"),
                     "/training/zero_stage"),
              "2");  // without "fsdp_", quoted
}

TEST(AccelerateImport, ShardsWithinAMachineWhereHybrid) {
    const Import import = import_file("accelerate/fsdp_hybrid.yaml");
    EXPECT_EQ(stated(import, "/training/shard_group"), "8");
    EXPECT_THAT(finding(import, Finding::warning, "fsdp_config.fsdp_sharding_strategy").message,
                HasSubstr("divided by 8"));
    EXPECT_EQ(finding(import, Finding::warning, "fsdp_config.fsdp_sharding_strategy").line, 5U);
    const Import zero2 = import_yaml(
        "distributed_type: FSDP\nnum_processes: 8\nnum_machines: 2\nfsdp_config:\n  fsdp_sharding_strategy: "
        "5\n");
    EXPECT_EQ(stated(zero2, "/training/zero_stage"), "2");  // HYBRID_SHARD_ZERO2 by its number
    EXPECT_EQ(stated(zero2, "/training/shard_group"), "4");
}

TEST(AccelerateImport, ReadsTheDeepSpeedPlugin) {
    const Import import = import_file("accelerate/ds_zero2_offload_lora.yaml");
    EXPECT_EQ(stated(import, "/training/engine"), "\"deepspeed\"");
    EXPECT_EQ(stated(import, "/training/zero_stage"), "2");
    EXPECT_EQ(stated(import, "/training/gradient_accumulation_steps"), "8");
    EXPECT_EQ(stated(import, "/training/offload_optimizer"), "\"cpu\"");
    EXPECT_EQ(stated(import, "/training/offload_parameters"), "");
    EXPECT_EQ(stated(import, "/training/compute_dtype"), "\"bf16\"");
    const ImportFinding offload = finding(import, Finding::warning, "zero_optimization.offload_param");
    EXPECT_THAT(offload.message, HasSubstr("stage 3 only"));
    EXPECT_EQ(stated(import, "/cluster/gpus_used"), "8");
}

TEST(AccelerateImport, ReadsTheDeepSpeedFileBesideIt) {
    const std::string path = import_path("accelerate/with_file.yaml");
    const Import import = import_accelerate(
        "distributed_type: DEEPSPEED\nnum_processes: 8\ndeepspeed_config:\n  zero_stage: 2\n"
        "  deepspeed_config_file: ../deepspeed/z3_hpz.json\n",
        path);
    EXPECT_EQ(stated(import, "/training/zero_stage"), "3");
    EXPECT_EQ(stated(import, "/training/secondary_shard_group"), "8");
    EXPECT_THAT(finding(import, Finding::rejected, "deepspeed_config.zero_stage").message,
                HasSubstr("beside deepspeed_config_file"));
}

TEST(AccelerateImport, ReadsOtherTypes) {
    EXPECT_EQ(stated(import_yaml("distributed_type: MULTI_GPU\nnum_processes: 4\n"), "/training/engine"),
              "\"ddp\"");
    EXPECT_EQ(stated(import_yaml("distributed_type: 'NO'\nnum_processes: 1\n"), "/training/engine"),
              "\"single\"");
    const Import megatron = import_yaml(
        "distributed_type: MEGATRON_LM\nnum_processes: 8\nmegatron_lm_config:\n  megatron_lm_tp_degree: 2\n"
        "  megatron_lm_use_distributed_optimizer: true\n");
    EXPECT_EQ(stated(megatron, "/training/tensor_parallel"), "2");
    EXPECT_EQ(stated(megatron, "/training/zero_stage"), "1");
}

TEST(AccelerateImport, RejectsUnknownKeysWithTheNearest) {
    const Import import =
        import_yaml("distributed_type: MULTI_GPU\nnum_processes: 4\nmixed_precison: bf16\n");
    const ImportFinding rejected = finding(import, Finding::rejected, "mixed_precison");
    EXPECT_EQ(rejected.line, 3U);
    EXPECT_THAT(rejected.hint, HasSubstr("mixed_precision"));
}

TEST(AccelerateImport, RefusesAKeyThatStandsTwice) {
    // PyYAML would take the last, yaml-cpp the first.
    const Error twice = error_of(
        [] { (void)import_yaml("distributed_type: FSDP\nnum_processes: 8\ndistributed_type: DEEPSPEED\n"); });
    EXPECT_THAT(twice.message(), HasSubstr("\"distributed_type\" is given twice: on lines 1 and 3"));
    EXPECT_EQ(twice.place(), (ErrorPlace{"config.yaml", "line 3: distributed_type"}));
    const Error nested = error_of([] {
        (void)import_yaml(
            "distributed_type: FSDP\nnum_processes: 8\nfsdp_config:\n  fsdp_version: 1\n  fsdp_version: 2\n");
    });
    EXPECT_EQ(nested.place().pointer, "line 5: fsdp_config.fsdp_version");
}

TEST(AccelerateImport, RefusesWhatHasNoReading) {
    const auto place = [](const char* text) {
        return error_of([&] { (void)import_yaml(text); }).place().pointer;
    };
    const auto message = [](const char* text) {
        return error_of([&] { (void)import_yaml(text); }).message();
    };
    EXPECT_THAT(message("num_processes: 4\n"), HasSubstr("distributed_type"));
    EXPECT_THAT(message("distributed_type: FSDPP\n"), HasSubstr("cannot be \"FSDPP\""));
    EXPECT_THAT(message("distributed_type: FSDP\nnum_machines: 3\nnum_processes: 8\n"),
                HasSubstr("8 processes do not spread evenly over 3"));
    EXPECT_THAT(message("distributed_type: FSDP\nnum_machines: 4\nnum_processes: 2\n"),
                HasSubstr("4 machines cannot share 2"));
    EXPECT_EQ(place("distributed_type: FSDP\nnum_processes: four\n"), "line 2: num_processes");
    EXPECT_THAT(place("distributed_type: [\n"), HasSubstr("line "));
    EXPECT_THAT(message("- a\n- b\n"), HasSubstr("key: value"));
    EXPECT_EQ(
        place("distributed_type: FSDP\nnum_processes: 2\nfsdp_config:\n  fsdp_sharding_strategy: FULL\n"),
        "line 4: fsdp_config.fsdp_sharding_strategy");
}

}  // namespace
}  // namespace zeroplan
