#include <gmock/gmock.h>

#include "core/import/import_file.hpp"
#include "core/json/error_of.hpp"

namespace zeroplan {
namespace {

using testing::HasSubstr;

Import import_ds(const std::string& text, const ImportContext& context = {}) {
    return import_deepspeed(text, "ds.json", context);
}

constexpr const char* zero_object = "/training/deepspeed/zero_optimization/";

TEST(DeepSpeedImport, AsksForTheModelWhereAutoFollowsFromIt) {
    const Import import = import_file("deepspeed/z3_auto_hf.json");
    EXPECT_EQ(stated(import, "/training/engine"), "\"deepspeed\"");
    EXPECT_EQ(stated(import, "/training/zero_stage"), "3");
    EXPECT_EQ(stated(import, zero_object + std::string("reduce_bucket_size")), "\"auto\"");
    EXPECT_EQ(finding(import, Finding::missing, "zero_optimization.reduce_bucket_size").asks_for, "/model");
    EXPECT_EQ(finding(import, Finding::missing, "bf16").asks_for, "/training/compute_dtype");
    EXPECT_EQ(stated(import, "/training/compute_dtype"), "");
    EXPECT_EQ(finding(import, Finding::missing, "train_micro_batch_size_per_gpu").asks_for,
              "/training/micro_batch_size");
    EXPECT_FALSE(import.figure("reduce_bucket_size"));
    EXPECT_FALSE(import.rejected());
}

TEST(DeepSpeedImport, FillsInAutoFromTheHiddenSizeAsHuggingFaceDoes) {
    ImportContext context;
    context.hidden_size = 4096;
    const Import import = import_file("deepspeed/z3_auto_hf.json", context);
    EXPECT_EQ(import.figure("reduce_bucket_size"), 16777216);
    EXPECT_EQ(import.figure("stage3_prefetch_bucket_size"), 15099494);  // 0.9 · 4096², made whole
    EXPECT_EQ(import.figure("stage3_param_persistence_threshold"), 40960);
    EXPECT_THAT(finding(import, Finding::resolved, "zero_optimization.reduce_bucket_size").message,
                HasSubstr("16777216"));
}

TEST(DeepSpeedImport, ReadsWhatPeopleCopyAroundSince2020) {
    const Import import = import_file("deepspeed/z2_legacy_cpu_offload.json");
    EXPECT_EQ(stated(import, "/training/zero_stage"), "2");
    EXPECT_EQ(stated(import, "/training/offload_optimizer"), "\"cpu\"");
    EXPECT_EQ(stated(import, zero_object + std::string("reduce_bucket_size")), "200000000");
    EXPECT_EQ(stated(import, "/training/compute_dtype"), "\"fp16\"");
    EXPECT_EQ(finding(import, Finding::deprecated, "zero_optimization.cpu_offload").line, 7U);
    EXPECT_THAT(finding(import, Finding::deprecated, "zero_optimization.cpu_offload_use_pin_memory").message,
                HasSubstr("maps it to nothing"));
    EXPECT_THAT(
        finding(import, Finding::ignored, "zero_optimization.stage3_gather_fp16_weights_on_model_save")
            .message,
        HasSubstr("no effect at stage 2"));
    // Comments and commas: two findings about the file itself.
    EXPECT_EQ(finding(import, Finding::warning, "").line, 2U);
    EXPECT_FALSE(import.rejected());
    // Two buffers of 2e8 elements of 2 bytes: 381 MiB each.
    EXPECT_EQ(import.figure("reduce_buffer_bytes"), 2.0 * 2e8 * 2);
}

TEST(DeepSpeedImport, NamesTheNearestWholeNumber) {
    const Import import = import_file("deepspeed/z3_float_prefetch.json");
    const ImportFinding rejected =
        finding(import, Finding::rejected, "zero_optimization.stage3_prefetch_bucket_size");
    EXPECT_EQ(rejected.line, 8U);
    EXPECT_THAT(rejected.message, HasSubstr("15099494.4"));
    EXPECT_THAT(rejected.hint, HasSubstr("15099494,"));
    EXPECT_EQ(stated(import, zero_object + std::string("stage3_prefetch_bucket_size")), "15099494");
    EXPECT_TRUE(import.rejected());
}

TEST(DeepSpeedImport, RefusesTwoPrecisions) {
    const Error error = error_of([] { (void)import_file("deepspeed/both_bf16_fp16.json"); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_input);
    EXPECT_EQ(error.place(), (ErrorPlace{"deepspeed/both_bf16_fp16.json", "line 3: bf16"}));
    EXPECT_THAT(error.message(), HasSubstr("bf16 (line 4) and fp16 (line 7)"));
}

TEST(DeepSpeedImport, MakesHpzASecondaryShardGroup) {
    const Import import = import_file("deepspeed/z3_hpz.json");
    EXPECT_EQ(stated(import, "/training/secondary_shard_group"), "8");
    EXPECT_EQ(stated(import, zero_object + std::string("zero_quantized_weights")), "false");
    EXPECT_EQ(stated(import_ds(R"({"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 1}})"),
                     "/training/secondary_shard_group"),
              "");
}

TEST(DeepSpeedImport, SendsAioToTheTopLevel) {
    const Import import = import_file("deepspeed/z3_nvme_aio_misplaced.json");
    const ImportFinding aio = finding(import, Finding::rejected, "zero_optimization.aio");
    EXPECT_EQ(aio.line, 23U);
    EXPECT_THAT(aio.message, HasSubstr("extra fields not permitted"));
    EXPECT_THAT(aio.hint, HasSubstr("top level"));
    EXPECT_EQ(stated(import, "/training/offload_optimizer"), "\"nvme\"");
    EXPECT_EQ(stated(import, "/training/offload_parameters"), "\"nvme\"");
    EXPECT_EQ(stated(import, zero_object + std::string("offload_param/buffer_count")), "5");
    EXPECT_EQ(stated(import, zero_object + std::string("offload_param/buffer_size")), "100000000");
    EXPECT_EQ(stated(import, zero_object + std::string("offload_optimizer/buffer_count")), "4");
}

TEST(DeepSpeedImport, OffloadsParametersAtStage3Only) {
    const Import import = import_file("deepspeed/z2_offload_param.json");
    EXPECT_EQ(stated(import, "/training/offload_parameters"), "");
    EXPECT_EQ(stated(import, "/training/offload_optimizer"), "\"cpu\"");
    EXPECT_THAT(finding(import, Finding::warning, "zero_optimization.offload_param").message,
                HasSubstr("stage 3 only: at stage 2 every rank keeps all 16-bit parameters"));
}

TEST(DeepSpeedImport, TakesTrueForStage1) {
    const Import import = import_file("deepspeed/legacy_bool_zero.json");
    EXPECT_EQ(stated(import, "/training/zero_stage"), "1");
    EXPECT_EQ(finding(import, Finding::deprecated, "zero_optimization").line, 6U);
    EXPECT_EQ(import.scenario.train_batch_size, 32U);
}

TEST(DeepSpeedImport, SaysForHowManyRanksTheBatchHolds) {
    const Import open = import_file("deepspeed/batch_mismatch.json");
    EXPECT_THAT(finding(open, Finding::missing, "train_batch_size").message,
                HasSubstr("for 8 data-parallel ranks only"));
    EXPECT_EQ(open.scenario.train_batch_size, 256U);
    EXPECT_EQ(open.scenario.train_batch_size_origin, "line 2: train_batch_size");
    ImportContext context;
    context.ranks = 8;
    EXPECT_EQ(import_file("deepspeed/batch_mismatch.json", context).figure("gradient_accumulation_steps"), 8);
    context.ranks = 16;
    EXPECT_THAT(error_of([&] { (void)import_file("deepspeed/batch_mismatch.json", context); }).hint(),
                HasSubstr("run on 8 ranks"));
}

TEST(DeepSpeedImport, DerivesAccumulationAndFlagsKeysOfOldVersions) {
    ImportContext context;
    context.ranks = 4;
    const Import import = import_file("deepspeed/batch_only_total.json", context);
    EXPECT_EQ(import.figure("gradient_accumulation_steps"), 32);
    EXPECT_EQ(finding(import, Finding::rejected, "zero_optimization.grad_hooks").line, 10U);
    EXPECT_EQ(stated(import, zero_object + std::string("overlap_comm")), "false");
    EXPECT_EQ(stated(import, zero_object + std::string("reduce_bucket_size")), "500000000");
}

TEST(DeepSpeedImport, WarnsOfBucketsBoundByLatency) {
    const Import import = import_file("deepspeed/z3_tiny_buckets.json");
    EXPECT_THAT(finding(import, Finding::warning, "zero_optimization.reduce_bucket_size").message,
                HasSubstr("20000 reductions of every 10^9 parameters"));
    EXPECT_EQ(finding(import_file("deepspeed/z3_hpz.json"), Finding::warning,
                      "zero_optimization.reduce_bucket_size")
                  .message,
              "");
}

TEST(DeepSpeedImport, ResolvesTheDefaultsOfTheSmallestFile) {
    const Import import = import_file("deepspeed/z3_defaults_only.json");
    EXPECT_EQ(import.figure("reduce_bucket_size"), 5e8);
    EXPECT_EQ(import.figure("stage3_prefetch_bucket_size"), 5e7);
    EXPECT_EQ(import.figure("stage3_param_persistence_threshold"), 1e5);
    EXPECT_EQ(import.figure("stage3_max_live_parameters"), 1e9);
    EXPECT_EQ(import.figure("stage3_max_reuse_distance"), 1e9);
    EXPECT_EQ(import.figure("overlap_comm"), 1);  // at stage 3
    EXPECT_EQ(import_ds(R"({"zero_optimization": {"stage": 2}})").figure("overlap_comm"), 0);
    EXPECT_EQ(stated(import, "/training/compute_dtype"), "\"fp32\"");
    EXPECT_EQ(finding(import, Finding::missing, "train_micro_batch_size_per_gpu").asks_for,
              "/training/micro_batch_size");
    EXPECT_FALSE(import.rejected());
}

TEST(DeepSpeedImport, ReadsNumbersAsPeopleSpellThem) {
    const Import floating = import_ds(R"({"zero_optimization": {"stage": 1, "reduce_bucket_size": 5e8}})");
    EXPECT_EQ(stated(floating, zero_object + std::string("reduce_bucket_size")), "500000000");
    EXPECT_FALSE(floating.rejected());
    const Import quoted = import_ds(R"({"zero_optimization": {"stage": 1, "reduce_bucket_size": "5e8"}})");
    EXPECT_EQ(stated(quoted, zero_object + std::string("reduce_bucket_size")), "500000000");
    EXPECT_THAT(finding(quoted, Finding::rejected, "zero_optimization.reduce_bucket_size").hint,
                HasSubstr("500000000"));
    // pydantic reads whole numbers out of text
    EXPECT_FALSE(
        import_ds(R"({"zero_optimization": {"stage": 1, "reduce_bucket_size": "200000000"}})").rejected());
    EXPECT_THAT(error_of([] {
                    (void)import_ds(R"({"zero_optimization": {"reduce_bucket_size": "big"}})");
                }).message(),
                HasSubstr("\"big\""));
    EXPECT_THAT(
        error_of([] { (void)import_ds(R"({"zero_optimization": {"reduce_bucket_size": -1}})"); }).message(),
        HasSubstr("at least 0, but is -1"));
    EXPECT_THAT(error_of([] { (void)import_ds("{\"zero_optimization\":\n{\"stage\": 4}}"); }).place().pointer,
                HasSubstr("line 2: zero_optimization.stage"));
}

TEST(DeepSpeedImport, TakesBothNamesOfAStage3Key) {
    const Import import = import_ds(R"({"zero_optimization": {"stage": 3, "max_live_parameters": 3e8}})");
    EXPECT_EQ(stated(import, zero_object + std::string("stage3_max_live_parameters")), "300000000");
    EXPECT_EQ(import.figure("stage3_max_live_parameters"), 3e8);
}

TEST(DeepSpeedImport, NamesTheNearestKey) {
    const Import import =
        import_ds(R"({"zero_optimisation": {}, "zero_optimization": {"stage": 3, "overlap_com": true}})");
    EXPECT_THAT(finding(import, Finding::rejected, "zero_optimization.overlap_com").hint,
                HasSubstr("overlap_comm"));
    EXPECT_THAT(finding(import, Finding::ignored, "zero_optimisation").hint, HasSubstr("zero_optimization"));
    EXPECT_THAT(finding(import_ds(R"({"overlap_comm": true, "bf16": {"enabled": true}})"), Finding::ignored,
                        "overlap_comm")
                    .hint,
                HasSubstr("belongs into zero_optimization"));
}

TEST(DeepSpeedImport, MapsDtypesAndOptimizers) {
    const Import import = import_ds(
        R"({"bf16": {"enabled": true, "check_grad_overflow": false}, "data_types": {"grad_accum_dtype": "fp32"},
            "communication_data_type": "fp32", "optimizer": {"type": "Lion"}})");
    EXPECT_EQ(stated(import, "/training/compute_dtype"), "\"bf16\"");
    EXPECT_EQ(stated(import, "/training/gradient_dtype"), "\"fp32\"");
    EXPECT_EQ(stated(import, "/training/reduce_dtype"), "\"fp32\"");
    EXPECT_EQ(stated(import, "/training/optimizer"), "\"lion\"");
    EXPECT_EQ(stated(import, "/training/deepspeed/bf16/check_grad_overflow"), "false");
    EXPECT_EQ(stated(import_ds(R"({"optimizer": {"type": "Adam", "params": {"adam_w_mode": false}}})"),
                     "/training/optimizer"),
              "\"adam\"");
    EXPECT_EQ(
        finding(import_ds(R"({"optimizer": {"type": "OneBitAdam"}})"), Finding::missing, "optimizer.type")
            .asks_for,
        "/training/optimizer");
}

TEST(DeepSpeedImport, NotesAKeyTogetherWithTheOneThatReplacedIt) {
    const Import import = import_ds(
        R"({"zero_optimization": {"stage": 2, "cpu_offload": true, "offload_optimizer": {"device": "none"}}})");
    EXPECT_THAT(finding(import, Finding::rejected, "zero_optimization.cpu_offload").message,
                HasSubstr("together with"));
    EXPECT_EQ(stated(import, "/training/offload_optimizer"), "\"none\"");
}

}  // namespace
}  // namespace zeroplan
