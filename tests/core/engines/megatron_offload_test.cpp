#include <gtest/gtest.h>

#include <algorithm>

#include "core/engines/megatron_scenarios.hpp"
#include "core/engines/program_hazards.hpp"
#include "engines/torch_host.hpp"

namespace zeroplan {
namespace {

Plan offloaded(double fraction) {
    Scenario scenario = megatron_scenario("llama", {.data = 2, .zero_stage = 1});
    scenario.training.offload_optimizer = OffloadTarget::cpu;
    scenario.training.offload_fraction = fraction;
    return make_plan(scenario);
}

Plan on_device() {
    return make_plan(megatron_scenario("llama", {.data = 2, .zero_stage = 1}));
}

std::uint64_t states_of(const Plan& plan) {
    return resident_of(plan, 0, Category::optimizer_states) + resident_of(plan, 0, Category::master_weights);
}

struct Moved {
    std::uint64_t gradients = 0, parameters = 0, elements = 0, step_bytes = 0, on_device = 0;
};
Moved moved(const Plan& plan) {
    Moved sums;
    for (const Section& section : plan.programs[0].step)
        for (const Operation& operation : section.operations) {
            if (const auto* copy = std::get_if<HostCopy>(&operation.body))
                (copy->path == CopyPath::to_host ? sums.gradients : sums.parameters) += copy->bytes;
            if (const auto* step = std::get_if<HostStep>(&operation.body)) {
                sums.elements += step->elements;
                sums.step_bytes += step->bytes;
            }
            if (const auto* step = std::get_if<OptimizerStep>(&operation.body))
                sums.on_device += step->elements;
        }
    return sums;
}

// All of it: fp32 gradients go to the host, master weights and two moments are read and written there, 16-bit
// values are cast on the device from fp32 that comes back; nothing of them stays on the device.
TEST(MegatronOffload, StepsTheWholeShareOnTheHost) {
    const Plan plan = offloaded(1);
    const std::uint64_t share = states_of(on_device()) / 12;
    const Moved sums = moved(plan);
    EXPECT_EQ(states_of(plan), 0U);
    EXPECT_EQ(sums.elements, share);
    EXPECT_EQ(sums.gradients, 4 * share);
    EXPECT_EQ(sums.parameters, 4 * share);
    EXPECT_EQ(sums.step_bytes, share * (2 * 4 + 4 + 2 * 8));
    EXPECT_EQ(sums.on_device, 0U);
    EXPECT_LT(plan.rank_groups[0].peak_reserved, on_device().rank_groups[0].peak_reserved);
}

bool waits_for(const Section& section, OperationId id, OperationId awaited) {
    const auto& waits = section.operations[id].waits;
    return std::find(waits.begin(), waits.end(), awaited) != waits.end();
}

// Reduced gradients leave, the host steps, new values come back and are gathered: each behind the one before.
TEST(MegatronOffload, KeepsTheStepsInOrder) {
    const Plan plan = offloaded(1);
    const Section& last = plan.programs[0].step.back();
    OperationId reduced = 0, left = 0, stepped = 0, back = 0;
    int copies = 0, gathers = 0;
    for (OperationId id = 0; id < last.operations.size(); ++id) {
        const OperationBody& body = last.operations[id].body;
        const auto* collective = std::get_if<Collective>(&body);
        if (collective != nullptr && collective->kind == CollectiveKind::reduce_scatter) reduced = id;
        if (const auto* copy = std::get_if<HostCopy>(&body)) {
            ++copies;
            const bool leaves = copy->path == CopyPath::to_host;
            EXPECT_TRUE(waits_for(last, id, leaves ? reduced : stepped));
            (leaves ? left : back) = id;
        }
        if (std::holds_alternative<HostStep>(body)) {
            EXPECT_TRUE(waits_for(last, id, left));
            stepped = id;
        }
        if (collective != nullptr && collective->kind == CollectiveKind::all_gather && back != 0) {
            if (gathers++ == 0) {
                EXPECT_TRUE(waits_for(last, id, back));
            }
        }
    }
    EXPECT_EQ(copies, 2);
    EXPECT_GE(gathers, 1);
    EXPECT_EQ(hazards(plan.programs[0]), std::vector<std::string>{});
}

// Whole parameters go until the fraction is reached: at least it, and less than one parameter more.
TEST(MegatronOffload, TakesWholeParametersUntilTheFractionIsReached) {
    const std::uint64_t share = states_of(on_device()) / 12;
    const Plan plan = offloaded(0.5);
    const Moved sums = moved(plan);
    EXPECT_GE(2 * sums.elements, share);
    EXPECT_LT(sums.elements, share / 2 + 512 * 64);
    EXPECT_EQ(states_of(plan), 12 * (share - sums.elements));
    EXPECT_GE(sums.on_device, share - sums.elements);
    EXPECT_EQ(moved(offloaded(0)).elements, 0U);
    EXPECT_EQ(offloaded(0).programs, on_device().programs);
}

std::uint64_t numel_of(const Plan& plan) {
    std::uint64_t numel = 0;
    for (const Parameter& p : plan.rank_models[0].model.parameters)
        if (!p.shared_with) numel += p.numel;
    return numel;
}

// The first optimizer page-locks every parameter in fp32 on every rank, the one that stays its share; both
// gradients and states come with the first step. No tensor of this model fills less than half of its block,
// and the share's gradients fit into blocks that the first optimizer has left.
TEST(MegatronOffload, PageLocksWholeParametersFirst) {
    const Plan plan = offloaded(1);
    const std::uint64_t share = states_of(on_device()) / 12;
    const std::uint64_t exact = 2 * (4 * numel_of(plan) + 4 * share + 8 * share);
    EXPECT_GE(plan.memory.host_per_node, Bytes{exact});
    EXPECT_LT(plan.memory.host_per_node, Bytes{2 * exact});
    const auto host = [&](Phase phase) {
        return plan.rank_groups[0].phases[static_cast<std::size_t>(phase)].host_per_node;
    };
    EXPECT_EQ(host(Phase::load), host(Phase::init));
    EXPECT_LT(host(Phase::init) + Bytes{2 * 8 * share}, host(Phase::steady_step) + Bytes{1});
}

// Meanwhile the first optimizer's fp32 clones of what stays are on the device, whole: beside 6 bytes a
// parameter of buffers nearly 2 of clones and 1 of the share's master weights. Without an offload 8 is the
// most.
TEST(MegatronOffload, ClonesWholeParametersOnTheDeviceWhileLoading) {
    const auto loaded = [](const Plan& plan) { return plan.rank_groups[0].phases[0].peak_allocated; };
    const Plan half = offloaded(0.5);
    EXPECT_LT(loaded(on_device()), Bytes{8 * numel_of(half) + 64 * 512});
    EXPECT_EQ(loaded(offloaded(1)), loaded(on_device()));
    EXPECT_GT(loaded(half), Bytes{17 * numel_of(half) / 2});
    EXPECT_LT(loaded(half), Bytes{9 * numel_of(half)});
}

TEST(MegatronOffload, NeedsTheDistributedOptimizerAndMegatronsOwnDataParallelism) {
    for (const auto& [engine, stage] :
         {std::pair{EngineKind::megatron, 0U}, {EngineKind::megatron_fsdp, 3U}}) {
        Scenario scenario = megatron_scenario("llama", {.data = 2, .zero_stage = stage});
        scenario.training.engine = engine;
        scenario.training.offload_optimizer = OffloadTarget::cpu;
        try {
            (void)make_plan(scenario);
            ADD_FAILURE() << "accepted";
        } catch (const Error& error) {
            EXPECT_EQ(error.place().pointer, "/training/offload_optimizer");
        }
    }
}

TEST(MegatronOffload, NeedsThePrecisionAwareOptimizer) {
    Scenario scenario = megatron_scenario("llama", {.data = 2, .zero_stage = 1});
    scenario.training.offload_optimizer = OffloadTarget::cpu;
    scenario.training.megatron_json = R"({"use_precision_aware_optimizer": true})";
    EXPECT_EQ(make_plan(scenario).programs, offloaded(1).programs);  // what leaving it out means
    scenario.training.megatron_json = R"({"use_precision_aware_optimizer": false})";
    try {
        (void)make_plan(scenario);
        ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
        EXPECT_EQ(error.place().pointer, "/training/megatron/use_precision_aware_optimizer");
        EXPECT_NE(error.hint().find("leave it out"), std::string::npos);
    }
}

}  // namespace
}  // namespace zeroplan
