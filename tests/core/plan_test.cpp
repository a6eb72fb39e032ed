#include "zeroplan/plan.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "zeroplan/io.hpp"

namespace zeroplan {
namespace {

Plan plan_of(const std::string& training, const std::string& cluster = "") {
    return make_plan(resolve_scenario({"",
                                       R"({"model": {"preset": "gpt2"}, "training": {)" + training +
                                           R"(}, "cluster": {"topology": "dgx-h100")" + cluster + "}}",
                                       {}}));
}

bool warns(const Plan& plan, const std::string& code) {
    for (const Warning& warning : plan.warnings)
        if (warning.code == code) return true;
    return false;
}

TEST(PlanCommunication, CountsContextParallelRanksAmongTheReplicas) {
    const auto sent = [](const std::string& degrees) {
        const Plan plan =
            plan_of(R"("engine": "fsdp2", "shard_group": 2, )" + degrees, R"(, "gpus_used": 4)");
        return plan.communication.at("all_reduce");
    };
    // Two replicas either way: a ring of two sends each buffer once.
    for (const char* degrees : {R"("data_parallel": 4)", R"("data_parallel": 2, "context_parallel": 2)"}) {
        const CommunicationVolume volume = sent(degrees);
        EXPECT_GT(volume.buffer_bytes, Bytes{}) << degrees;
        EXPECT_EQ(volume.bytes_per_rank, volume.buffer_bytes) << degrees;
    }
}

/// gpt2-xl on one GPU with `bytes` of memory.
Plan on_device_of(std::uint64_t bytes) {
    return make_plan(resolve_scenario(
        {"",
         R"({"model": {"preset": "gpt2-xl"}, "training": {"engine": "single", "compute_dtype": "bf16",
             "micro_batch_size": 2}, "cluster": {"gpu": {"name": "a", "hbm_bytes_per_s": 2e12,
             "dense_bf16_flop_per_s": 3e14, "compute_capability": 80, "memory_usable_bytes": )" +
             std::to_string(bytes) + R"(}, "topology": "dgx-a100", "gpus_used": 1}})",
         {}}));
}

TEST(PlanMemory, IsWhatTheAllocatorKeepsNearTheEndOfTheDevice) {
    const Plan roomy = on_device_of(300'000'000'000);
    const RankGroup& wide = roomy.rank_groups[0];
    ASSERT_GT(wide.peak_reserved, wide.steady.allocated);
    EXPECT_EQ(wide.peak_reserved, wide.wanted_reserved);
    EXPECT_FALSE(warns(roomy, "allocator_retries"));

    const Bytes tight{wide.peak_device.count() - (20ULL << 20)};
    const Plan squeezed = on_device_of(tight.count());
    const RankGroup& group = squeezed.rank_groups[0];
    EXPECT_EQ(group.steady, wide.steady);
    EXPECT_LE(group.peak_device, tight);
    EXPECT_GE(group.peak_reserved, group.steady.allocated);
    EXPECT_EQ(squeezed.memory.overall_peak_device, group.peak_device);
    EXPECT_EQ(squeezed.memory.verdict, Verdict::marginal);
    EXPECT_EQ(squeezed.memory.high, roomy.memory.high);  // enough on any device
    EXPECT_TRUE(warns(squeezed, "allocator_retries"));
}

TEST(PlanWarnings, NameHostMemoryThatIsNotCounted) {
    EXPECT_FALSE(warns(plan_of(R"("engine": "fsdp2")"), "host_memory_not_counted"));
    const Plan offloaded =
        plan_of(R"("engine": "fsdp2", "offload_parameters": "cpu", "offload_optimizer": "cpu")");
    EXPECT_EQ(warns(offloaded, "host_memory_not_counted"), offloaded.memory.host_per_node == Bytes{});
}

TEST(PlanWarnings, SayNothingOfHostMemoryWhereNothingGoesThere) {
    EXPECT_FALSE(warns(plan_of(R"("engine": "megatron", "zero_stage": 1, "offload_optimizer": "cpu",
                                   "offload_fraction": 0)"),
                       "host_memory_not_counted"));
    EXPECT_FALSE(warns(plan_of(R"("engine": "deepspeed", "zero_stage": 1, "offload_parameters": "cpu")"),
                       "host_memory_not_counted"));
}

TEST(PlanWarnings, NameKeysWithoutEffect) {
    EXPECT_FALSE(warns(plan_of(""), "no_effect"));
    EXPECT_TRUE(warns(plan_of(R"("offload_fraction": 0.5)"), "no_effect"));
    EXPECT_TRUE(warns(plan_of(R"("recompute_every": 2)"), "no_effect"));
    EXPECT_FALSE(warns(plan_of(R"("recompute_every": 2, "recompute": "selective_layer")"), "no_effect"));
    EXPECT_TRUE(warns(plan_of(R"("pipeline_schedule": "gpipe")"), "no_effect"));
    EXPECT_TRUE(warns(plan_of(R"("engine": "megatron", "sequence_parallel": true)"), "no_effect"));
}

TEST(PlanWarnings, NameASecondaryShardGroupThatHasNoShards) {
    const std::string with = R"("engine": "deepspeed", "secondary_shard_group": 4, "zero_stage": )";
    const Plan second = plan_of(with + "2"), third = plan_of(with + "3");
    EXPECT_TRUE(warns(second, "no_effect"));
    EXPECT_EQ(second.memory.overall_peak_device,
              plan_of(R"("engine": "deepspeed", "zero_stage": 2)").memory.overall_peak_device);
    EXPECT_FALSE(warns(third, "no_effect"));
}

TEST(PlanWarnings, SayThatSelectiveRecomputeIsNoneWithFusedAttention) {
    const std::string selective = R"("zero_stage": 1, "recompute": "selective", "attention": )";
    const Plan flash = plan_of(selective + R"("flash")");
    EXPECT_TRUE(warns(flash, "no_effect"));
    EXPECT_EQ(flash.memory.overall_peak_device, plan_of(R"("zero_stage": 1)").memory.overall_peak_device);
    const Plan eager = plan_of(selective + R"("eager")");
    EXPECT_FALSE(warns(eager, "no_effect"));
    EXPECT_LT(eager.memory.overall_peak_device,
              plan_of(R"("zero_stage": 1, "attention": "eager")").memory.overall_peak_device);
}

TEST(PlanWarnings, NameASlidingWindowShorterThanTheSequence) {
    const auto plan = [](const std::string& model, const char* sequence) {
        return make_plan(resolve_scenario({"",
                                           R"({"model": {"preset": ")" + model +
                                               R"("}, "training": {"zero_stage": 3, "sequence_length": )" +
                                               sequence + "}}",
                                           {}}));
    };
    const auto names_window = [](const Plan& p) {
        for (const Warning& warning : p.warnings)
            if (warning.message.find("window of attention, 4,096 tokens") != std::string::npos) return true;
        return false;
    };
    EXPECT_TRUE(names_window(plan("mistral-7b", "8192")));
    EXPECT_FALSE(names_window(plan("mistral-7b", "4096")));
    EXPECT_FALSE(names_window(plan("llama-2-7b", "8192")));
}

TEST(PlanSummary, JudgesThePhaseThatFillsTheDevice) {
    const Plan plan = plan_of(R"("zero_stage": 3, "micro_batch_size": 1)");
    const RankGroup& group = plan.rank_groups[plan.memory.worst_group];
    Bytes allocated, reserved;
    for (const PhaseMemory& phase : group.phases) {
        if (phase.phase == Phase::save) continue;
        allocated = std::max(allocated, phase.peak_allocated);
        reserved = std::max(reserved, phase.peak_reserved);
    }
    EXPECT_EQ(plan.memory.overall_peak_device, reserved + group.runtime);
    EXPECT_LE(plan.memory.low, plan.memory.overall_peak_device);
    EXPECT_LE(plan.memory.overall_peak_device, plan.memory.high);
    EXPECT_GE(plan.memory.low, allocated);
    const auto deciding =
        std::find_if(group.phases.begin(), group.phases.end(),
                     [&](const PhaseMemory& phase) { return phase.phase == plan.memory.peak_phase; });
    ASSERT_NE(deciding, group.phases.end());
    EXPECT_EQ(deciding->peak_reserved, reserved);
}

/// GPT-2 under DeepSpeed, whose memory PyTorch's caching allocator hands out, on GPUs of that size.
Plan cached_plan(std::uint64_t memory_usable) {
    return plan_of(R"("engine": "deepspeed", "zero_stage": 3, "micro_batch_size": 8)",
                   R"(, "gpu": {"name": "of that size", "link": "nvlink4", "hbm_bytes_per_s": 3e12,
                       "dense_bf16_flop_per_s": 1e15, "link_bytes_per_s_per_direction": 4.5e11,
                       "memory_usable_bytes": )" +
                       std::to_string(memory_usable) + "}");
}

TEST(PlanVerdict, StartsItsIntervalAtWhatTheAllocatorReserves) {
    const Plan ample = cached_plan(80'000'000'000);
    const RankGroup& group = ample.rank_groups[ample.memory.worst_group];
    const Bytes reserved = ample.memory.overall_peak_device - group.runtime;
    const Bytes allocated = group.steady.allocated;
    ASSERT_EQ(ample.memory.verdict, Verdict::fits);
    EXPECT_GT(ample.memory.low, reserved);  // and the least of the context and NCCL
    EXPECT_LT(ample.memory.low, ample.memory.overall_peak_device);

    // Where that is too much, free segments go back; what is still reserved beyond the tensors is certain.
    const Bytes least_runtime = ample.memory.low - reserved;
    const Plan tight = cached_plan((ample.memory.low - Bytes{1}).count());
    EXPECT_LT(tight.memory.low, ample.memory.low);
    EXPECT_GE(tight.memory.low, allocated + least_runtime);
    EXPECT_EQ(tight.memory.verdict, Verdict::marginal);
    const Plan too_tight = cached_plan((allocated + least_runtime).count());
    EXPECT_GT(too_tight.memory.low, too_tight.memory.capacity);
    EXPECT_EQ(too_tight.memory.verdict, Verdict::does_not_fit);

    const Plan hopeless = cached_plan(allocated.count() / 2);
    EXPECT_EQ(hopeless.memory.low, allocated + least_runtime);
}

TEST(PlanOverflow, NamesTheSizesAndBlamesTheLargest) {
    for (const auto& [training, place] :
         {std::pair{R"("micro_batch_size": 1073741824, "sequence_length": 8192)",
                    "/training/micro_batch_size"},
          {R"("micro_batch_size": 1048576, "gradient_accumulation_steps": 1073741824, "zero_stage": 3)",
           "/training/gradient_accumulation_steps"}}) {
        try {
            (void)make_plan(resolve_scenario(
                {"",
                 std::string(R"({"model": {"preset": "llama-3-8b"}, "training": {)") + training + "}}",
                 {}}));
            ADD_FAILURE() << training;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::overflow);
            EXPECT_EQ(error.place().pointer, place);
            EXPECT_NE(error.message().find("1,073,741,824"), std::string::npos) << error.message();
            EXPECT_NE(error.hint().find("1,073,741,824"), std::string::npos) << error.hint();
        }
    }
}

TEST(PlanWarnings, NameAPowerLimit) {
    EXPECT_FALSE(warns(plan_of(""), "power_limit_estimated"));
    EXPECT_TRUE(warns(plan_of("", R"(, "power_limit_watts": 300)"), "power_limit_estimated"));
}

}  // namespace
}  // namespace zeroplan
