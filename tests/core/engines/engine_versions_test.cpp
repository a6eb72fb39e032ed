#include "engines/engine_versions.hpp"

#include <gtest/gtest.h>

#include "zeroplan/io.hpp"

namespace zeroplan {
namespace {

TEST(EngineVersions, AreKnownByProductNumberCommitOrBranch) {
    using enum EngineKind;
    for (const auto& [engine, text] :
         {std::pair{native, "native 1"},
          {fsdp2, "PyTorch 2.6"},
          {fsdp2, "torch==2.10.0"},
          {ddp, "2.5"},
          {fsdp2, "torchtitan 820504e (2025-06-13), torch 38410cf9 (2025-06-14)"},
          {deepspeed, "deepspeed 0.5-0.6, Megatron-DeepSpeed 2022"},
          {deepspeed, "deepspeed v0.17.2"},
          {megatron, "megatron-core 23e00ed, Transformer Engine 2.11.0, torch 2.10"},
          {megatron, "megatron-core main (2025-2026), dev container"},
          {megatron, "nemo 24.07"},
          {megatron, "megatron-lm 2021 (local DDP)"},
          {megatron_fsdp, "core 0.14"},
          {llm_c, "llm.c f1e2ace"}})
        EXPECT_TRUE(is_known_version(engine, text)) << text;
    for (const auto& [engine, text] : {std::pair{native, "native 2"},
                                       {fsdp2, "foo"},
                                       {fsdp2, "torch 2.3"},
                                       {fsdp2, "torchtitan 820504e"},
                                       {ddp, "torch 1.4"},
                                       {deepspeed, "deepspeed 99"},
                                       {deepspeed, "deepspeed 0.2"},
                                       {megatron, "megatron 99"},
                                       {megatron, "megatron-core 1.5"},
                                       {megatron, "foo"},
                                       {llm_c, "foo"}})
        EXPECT_FALSE(is_known_version(engine, text)) << text;
}

// The nearest rules are taken, said so, and named.
TEST(EngineVersions, OfNoReleaseAreWarnedOfByEveryEngine) {
    for (const char* engine : {"native", "ddp", "ddp_zero_optimizer", "deepspeed", "fsdp1", "fsdp2",
                               "megatron", "megatron_fsdp", "llm_c"}) {
        const auto plan_of = [&](const std::string& version) {
            return make_plan(
                resolve_scenario({"",
                                  R"({"model": {"preset": "gpt2"}, "training": {"engine": ")" +
                                      std::string(engine) + R"(", "engine_version": ")" + version + "\"}}",
                                  {}}));
        };
        const Plan newest = plan_of(""), unknown = plan_of("foo 99");
        EXPECT_EQ(unknown.rule_set, newest.rule_set);
        EXPECT_EQ(unknown.programs, newest.programs);
        ASSERT_EQ(unknown.warnings.size(), newest.warnings.size() + 1) << engine;
        bool warned = false;
        for (const Warning& warning : unknown.warnings)
            warned = warned || (warning.code == "engine_version" &&
                                warning.message.find(newest.rule_set) != std::string::npos);
        EXPECT_TRUE(warned) << engine;
    }
}

}  // namespace
}  // namespace zeroplan
