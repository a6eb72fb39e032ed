#include "zeroplan/plan.hpp"

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

TEST(PlanWarnings, NameHostMemoryThatIsNotCounted) {
    EXPECT_FALSE(warns(plan_of(R"("engine": "fsdp2")"), "host_memory_not_counted"));
    const Plan offloaded =
        plan_of(R"("engine": "fsdp2", "offload_parameters": "cpu", "offload_optimizer": "cpu")");
    EXPECT_EQ(warns(offloaded, "host_memory_not_counted"), offloaded.memory.host_per_node == Bytes{});
}

TEST(PlanWarnings, NameAPowerLimit) {
    EXPECT_FALSE(warns(plan_of(""), "power_limit_not_modelled"));
    EXPECT_TRUE(warns(plan_of("", R"(, "power_limit_watts": 300)"), "power_limit_not_modelled"));
}

}  // namespace
}  // namespace zeroplan
