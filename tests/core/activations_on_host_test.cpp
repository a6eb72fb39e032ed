#include "activations_on_host.hpp"

#include <gtest/gtest.h>

#include "zeroplan/io.hpp"

namespace zeroplan {
namespace {

constexpr std::uint64_t mib = 1ULL << 20;

Operation copy(CopyPath path, std::uint64_t bytes, bool pinned, BufferRole role = BufferRole::activation) {
    return {HostCopy{.path = path, .role = role, .bytes = bytes, .pinned = pinned}, Stream::to_host, {}};
}

StepProgram step_of(std::vector<Operation> operations) {
    StepProgram program;
    program.step = {{"micro_batch", 4, std::move(operations)}};
    return program;
}

TEST(ActivationsOnHost, ArePageLockedInBlocksThatServeAgain) {
    // 3 MiB take a block of 4; the third copy is made when the second one's block is free again.
    const HostMemory most = activations_on_host(
        step_of({copy(CopyPath::to_host, 3 * mib, true), copy(CopyPath::to_host, 3 * mib, true),
                 copy(CopyPath::to_device, 3 * mib, true), copy(CopyPath::to_host, 4 * mib, true),
                 copy(CopyPath::to_device, 4 * mib, true), copy(CopyPath::to_device, 3 * mib, true)}));
    EXPECT_EQ(most.pinned, Bytes{8 * mib});
    EXPECT_EQ(most.pageable, Bytes{});
}

TEST(ActivationsOnHost, TakeTheirMostWherePageable) {
    const StepProgram program =
        step_of({copy(CopyPath::to_host, 3 * mib, false), copy(CopyPath::to_host, 3 * mib, false),
                 copy(CopyPath::to_device, 3 * mib, false), copy(CopyPath::to_host, mib, false),
                 copy(CopyPath::to_host, 9 * mib, false, BufferRole::gradients)});
    EXPECT_EQ(activations_on_host(program).pageable, Bytes{6 * mib});
    HostPhases phases;
    add_activations(phases, program);
    EXPECT_EQ(phases[static_cast<std::size_t>(Phase::init)].total(), Bytes{});
    EXPECT_EQ(phases[static_cast<std::size_t>(Phase::steady_step)].total(), Bytes{6 * mib});
    EXPECT_EQ(phases[static_cast<std::size_t>(Phase::save)].total(), Bytes{});
}

Plan planned(const std::string& training) {
    return make_plan(
        resolve_scenario({"",
                          R"({"model": {"preset": "gpt2"}, "training": {"micro_batch_size": 4, )" + training +
                              R"(}, "cluster": {"topology": "dgx-h100"}})",
                          {}}));
}

TEST(ActivationsOnHost, CountAmongTheNodesMemory) {
    // gpt2's 12 layers save at least an input of 4 · 1024 · 768 numbers in 16 bit each, on 8 GPUs.
    constexpr std::uint64_t inputs = 8ULL * 12 * 4 * 1024 * 768 * 2;
    for (const std::string engine :
         {R"("engine": "fsdp2", "zero_stage": 3)", R"("engine": "deepspeed", "zero_stage": 1)"}) {
        const Bytes without = planned(engine).memory.host_per_node;
        const Plan plan = planned(engine + R"(, "offload_activations": "cpu")");
        EXPECT_GE(plan.memory.host_per_node, without + Bytes{inputs}) << engine;
        for (const Warning& warning : plan.warnings) EXPECT_NE(warning.code, "host_memory_not_counted");
    }
}

}  // namespace
}  // namespace zeroplan
