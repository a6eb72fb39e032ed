#include "zeroplan/runtime_memory.hpp"

#include <gtest/gtest.h>

#include "zeroplan/io.hpp"

namespace zeroplan {
namespace {

using namespace literals;

Scenario on(const std::string& cluster) {
    return resolve_scenario({"",
                             R"({"model": {"preset": "gpt2"}, "training": {"compute_dtype": "fp16"},
                                     "cluster": )" +
                                 cluster + "}",
                             {}});
}

TEST(RuntimeMemory, OfOneRankIsItsContext) {
    const RuntimeMemory memory = runtime_memory(on(R"({"topology": "dgx-a100", "gpus_used": 1})"), {});
    EXPECT_EQ(memory.low, 300_MiB);
    EXPECT_EQ(memory.expected, 450_MiB);
    EXPECT_EQ(memory.high, 600_MiB);
}

// rules of NCCL 2.28.9: 4 MiB + 18 MiB a channel are 292, 436 and 580 MiB for 16, 24 and 32 channels.
TEST(RuntimeMemory, HasTheBuffersOfEachCommunicator) {
    const Scenario scenario = on(R"({"topology": "dgx-a100"})");
    const RuntimeMemory one = runtime_memory(scenario, {.count = 1}),
                        two = runtime_memory(scenario, {.count = 2});
    EXPECT_EQ(one.low, 300_MiB + 292_MiB);
    EXPECT_EQ(one.expected, 450_MiB + 436_MiB);
    EXPECT_EQ(one.high, 600_MiB + 580_MiB);
    EXPECT_EQ(two.expected, 450_MiB + 872_MiB);
}

TEST(RuntimeMemory, HasNvlsBuffersFromHopperOn) {
    const RuntimeMemory memory = runtime_memory(on(R"({"topology": "dgx-h100"})"), {});
    EXPECT_EQ(memory.expected, 450_MiB + 436_MiB + 256_MiB);
    EXPECT_EQ(memory.low, 300_MiB + 292_MiB);  // NVLS may be off
}

TEST(RuntimeMemory, HasTreesAtItsHighEndWhereAllReducesRun) {
    const Scenario scenario = on(R"({"topology": "dgx-a100"})");
    const RuntimeMemory rings = runtime_memory(scenario, {.count = 1, .all_reduces = false}),
                        trees = runtime_memory(scenario, {.count = 1, .all_reduces = true});
    // A chain's rank has two neighbours: 24 MiB on each of 32 channels.
    EXPECT_EQ(trees.high - rings.high, 768_MiB);
    EXPECT_EQ(trees.expected, rings.expected);
    EXPECT_EQ(trees.low, rings.low);
}

TEST(RuntimeMemory, HasNetworkBuffersAtItsHighEndBetweenNodes) {
    const RuntimeMemory one = runtime_memory(on(R"({"topology": "dgx-a100"})"), {}),
                        two = runtime_memory(on(R"({"topology": "dgx-a100", "nodes": 2})"), {});
    EXPECT_EQ(two.high - one.high, 256_MiB);  // 8 MiB more on each of 32 channels
    EXPECT_EQ(two.expected, one.expected);
    const RuntimeMemory trees =
        runtime_memory(on(R"({"topology": "dgx-a100", "nodes": 2})"), {.count = 1, .all_reduces = true});
    // Besides, 4 of 32 channels enter the node at this rank: three neighbours of 20 MiB each.
    EXPECT_EQ(trees.high - two.high, 768_MiB + 240_MiB);
}

TEST(RuntimeMemory, SaysWhatItRestsOn) {
    const RuntimeMemory memory = runtime_memory(on(R"({"topology": "dgx-a100"})"), {.count = 2});
    bool communicators = false;
    for (const Constant& constant : memory.constants) {
        communicators = communicators || (constant.name == "nccl_communicators" && constant.value == 2);
        if (constant.name != "nccl_ring_bytes") continue;
        EXPECT_EQ(constant.kind, "assumption");
    }
    EXPECT_TRUE(communicators);
}

}  // namespace
}  // namespace zeroplan
