#include "cli/expect_refused.hpp"

namespace zeroplan::test {
namespace {

TEST(Contradictions, BetweenFlagsAreRefusedWithBothValues) {
    expect_refused(plan_of_gpt2({"--zero", "3", "--set", "/training/zero_stage=1"}),
                   {"command line: --set /training/zero_stage: ", "/training/zero_stage is 1 here",
                    "--zero says 3", "keep one of the two"});
    expect_refused(plan_of_gpt2({"--set", "/training/zero_stage=2", "--set", "/training/zero_stage=1"}),
                   {"is 1 here", "--set /training/zero_stage says 2"});
    expect_refused(plan_of_gpt2({"--zero", "3", "--set", R"(/training={"engine": "fsdp2"})"}),
                   {"--set /training: ", "takes the place of /training/zero_stage = 3", "--zero"});
    expect_refused(
        plan_of_gpt2({"--set", R"(/training={"zero_stage": 2})", "--set", "/training/zero_stage=1"}),
        {"is 1 here", "--set /training says 2"});
    expect_refused(plan_of_gpt2({"--set", R"(/model={"preset": "llama-3-8b"})"}),
                   {"--set /model: ", "llama-3-8b", "--model says", "gpt2"});
    expect_refused(plan_of_gpt2({"--zero", "3", "--set", "/training/zero_stage=null"}),
                   {"/training/zero_stage is null, its default, here, but --zero says 3"});
    expect_refused(plan_of_gpt2({"--zero", "null"}), {"--zero: ", "null", "leave --zero out"});
}

TEST(Contradictions, AreNoneWhereTheSameIsSaidTwiceOrOfSomethingElse) {
    for (const std::vector<std::string>& more :
         {std::vector<std::string>{"--zero", "3", "--set", "/training/zero_stage=3"},
          {"--dtype", "bf16", "--set", "/training/compute_dtype=bf16"},
          {"--set", "/model/num_hidden_layers=2"},  // --model leaves it open
          {"--set", R"(/training={"zero_stage": 1})", "--set", "/training/micro_batch_size=2"},
          {"--set", "/training/zero_stage=null"}})
        EXPECT_EQ(zeroplan(plan_of_gpt2(more)).status, 0) << testing::PrintToString(more);
}

TEST(Contradictions, BetweenOtherProgramsFilesAreRefused) {
    const TemporaryFolder folder;
    const std::string deepspeed = folder.file("ds.json", R"({"train_micro_batch_size_per_gpu": 1,
                                                             "zero_optimization": {"stage": 3}})");
    const auto accelerate = [&](const char* name, const char* stage) {
        return folder.file(name, "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: " +
                                     std::string(stage) + "\nnum_machines: 1\nnum_processes: 8\n");
    };
    expect_refused(plan_of_gpt2({"--deepspeed", deepspeed, "--accelerate", accelerate("two.yaml", "2")}),
                   {"/training/zero_stage is 2 here", deepspeed, "says 3"});
    const Outcome same =
        zeroplan(plan_of_gpt2({"--deepspeed", deepspeed, "--accelerate", accelerate("three.yaml", "3")}));
    EXPECT_EQ(same.status, 0) << same.err;
}

}  // namespace
}  // namespace zeroplan::test
