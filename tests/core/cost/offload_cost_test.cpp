#include <gtest/gtest.h>

#include "core/cost/tiny_plan.hpp"
#include "zeroplan/cost_model.hpp"
#include "zeroplan/error.hpp"
#include "zeroplan/timed_program.hpp"

namespace zeroplan {
namespace {

/// 8 GPUs behind 50 GB/s each, memory of 800 GB/s, 64 cores, a drive of 8 GB/s.
ClusterSpec offloading_cluster() {
    ClusterSpec cluster = test::test_cluster(1);
    cluster.host = {.memory = Bytes{1ULL << 40},
                    .dram_bytes_per_s = 800e9,
                    .pcie_bytes_per_s = 50e9,
                    .nvme_bytes_per_s = 8e9,
                    .cores = 64};
    return cluster;
}

Plan offloading_plan(std::vector<Operation> operations, const ClusterSpec& cluster = offloading_cluster()) {
    return test::test_plan(cluster, {{"step", 1, std::move(operations)}}, {});
}

CostModel model_of_plan(const Plan& plan) {
    return {plan.scenario.model, plan.scenario.training, plan.scenario.cluster, plan.layout,
            plan.programs.front()};
}

HostCopy copy(CopyPath path, std::uint64_t bytes, bool pinned = true) {
    return {.path = path, .bytes = bytes, .pinned = pinned};
}

TEST(OffloadCost, PinnedCopiesTakePciesRate) {
    // 0.8 of 50 GB/s, less than the rank's eighth of 0.8 · 800 GB/s = 80.
    const Plan plan = offloading_plan({});
    EXPECT_NEAR(model_of_plan(plan).seconds(copy(CopyPath::to_host, 40'000'000'000)), 1, 1e-12);
    EXPECT_NEAR(model_of_plan(plan).seconds(copy(CopyPath::to_device, 40'000'000'000)), 1, 1e-12);
    EXPECT_NEAR(model_of_plan(plan).seconds(copy(CopyPath::to_host, 16'000'000'000, false)), 1, 1e-12);
}

TEST(OffloadCost, RanksOfANodeShareItsMemory) {
    ClusterSpec cluster = offloading_cluster();
    cluster.host.dram_bytes_per_s = 200e9;  // 0.8 · 200 / 8 = 20 GB/s a rank
    const Plan full = offloading_plan({}, cluster);
    EXPECT_NEAR(model_of_plan(full).seconds(copy(CopyPath::to_host, 20'000'000'000)), 1, 1e-12);
    cluster.gpus_per_node = cluster.gpus_used = 1;  // alone: PCIe's rate
    const Plan alone = offloading_plan({}, cluster);
    EXPECT_NEAR(model_of_plan(alone).seconds(copy(CopyPath::to_host, 40'000'000'000)), 1, 1e-12);
}

TEST(OffloadCost, RanksOfANodeShareItsDrive) {
    const Plan plan = offloading_plan({});
    EXPECT_NEAR(model_of_plan(plan).seconds(copy(CopyPath::from_nvme, 1'000'000'000)), 1, 1e-12);
}

TEST(OffloadCost, AHostStepTakesMemoryOrCores) {
    // 0.43 of an eighth of 800 GB/s; 64 cores reach 640 GB/s, an eighth of which is more.
    const Plan plan = offloading_plan({});
    EXPECT_NEAR(model_of_plan(plan).seconds(HostStep{.bytes = 43'000'000'000}), 1, 1e-12);
    EXPECT_NEAR(model_of_plan(plan).seconds(HostStep{.bytes = 43'000'000'000, .fused = false}), 5.7, 1e-12);
    ClusterSpec cluster = offloading_cluster();
    cluster.host.cores = 8;  // 10 GB/s a rank
    const Plan few = offloading_plan({}, cluster);
    EXPECT_NEAR(model_of_plan(few).seconds(HostStep{.bytes = 10'000'000'000}), 1, 1e-12);
}

TEST(OffloadCost, NamesTheRateThatIsMissing) {
    ClusterSpec cluster = offloading_cluster();
    cluster.host.nvme_bytes_per_s = 0;
    const Plan plan = offloading_plan({}, cluster);
    try {
        model_of_plan(plan).seconds(copy(CopyPath::to_nvme, 1));
        FAIL() << "copied to no drive";
    } catch (const Error& error) {
        EXPECT_EQ(error.place().pointer, "/cluster/host/nvme_bytes_per_second");
    }
}

Operation on(Stream stream, OperationBody body, std::vector<OperationId> waits = {}) {
    return {std::move(body), stream, std::move(waits)};
}

TEST(OffloadCost, CopiesAndHostStepsThatRunAloneAreExposed) {
    // 1 s to the host, a step of 1 s, 2 s back, while nothing else runs; directions don't hold each other up.
    const Plan plan = offloading_plan({on(Stream::to_host, copy(CopyPath::to_host, 40'000'000'000)),
                                       on(Stream::host, HostStep{.bytes = 43'000'000'000}, {0}),
                                       on(Stream::to_device, copy(CopyPath::to_device, 80'000'000'000), {1}),
                                       on(Stream::to_host, copy(CopyPath::to_host, 40'000'000'000))});
    const StepTimeline step = closed_form_step(plan);
    EXPECT_NEAR(step.step_time_s, 4, 1e-9);
    EXPECT_NEAR(step.offload_s, 5, 1e-9);
    EXPECT_NEAR(step.exposed_offload_s, 4, 1e-9);
    EXPECT_EQ(step.compute_s, 0);
    EXPECT_EQ(step.exposed_communication_s, 0);
    EXPECT_NEAR(step.bubble_s, 0, 1e-9);
}

}  // namespace
}  // namespace zeroplan
