#include <algorithm>

#include <gtest/gtest.h>

#include "core/engines/program_hazards.hpp"
#include "core/engines/torch_scenarios.hpp"
#include "engines/engine.hpp"

namespace zeroplan {
namespace {

Scenario small(EngineKind engine, std::uint32_t stage = 3) {
    return torch_scenario(engine, build_llama(small_llama(), torch_lowering()), 4, stage);
}

/// Elements of one kind of collective in one group, of a step.
std::uint64_t communicated(const StepProgram& program, CollectiveKind kind, GroupKind group) {
    std::uint64_t elements = 0;
    for (const Section& section : program.step)
        for (const Operation& operation : section.operations)
            if (const auto* c = std::get_if<Collective>(&operation.body))
                if (c->kind == kind && c->group == group) elements += section.repeat * c->elements;
    return elements;
}

StepProgram first_program(const Scenario& scenario) {
    StepProgram program = run_engine(scenario).programs.front();
    const auto found = hazards(program);
    EXPECT_TRUE(found.empty()) << found.front();
    return program;
}

// A layer: q and o of 64², k and v of 32 · 64, three matrices of 160 · 64 and two norms.
constexpr std::uint64_t layer = 2 * 64 * 64 + 2 * 32 * 64 + 3 * 160 * 64 + 2 * 64,
                        model_size = 3 * layer + 41'024;

TEST(Fsdp2, BackwardGathersInsideTheGroupThatForwardLeft) {
    using enum GroupKind;
    Scenario scenario = small(EngineKind::fsdp2);
    constexpr CollectiveKind gather = CollectiveKind::all_gather;
    const StepProgram whole = first_program(scenario);
    EXPECT_EQ(communicated(whole, gather, shard_group), model_size + 2 * layer);
    scenario.training.fsdp.reshard_after_forward = 2;
    const StepProgram halves = first_program(scenario);
    // The last layer and the root stay gathered.
    EXPECT_EQ(communicated(halves, gather, shard_group), model_size);
    EXPECT_EQ(communicated(halves, gather, secondary_shard_group), 2 * layer);
    scenario.training.fsdp.reshard_after_forward = 4;
    EXPECT_EQ(communicated(first_program(scenario), gather, shard_group), model_size + 2 * layer);
}

/// Elements of gradients in 16 bit that a section leaves behind.
std::uint64_t left_by(const StepProgram& program, const Section& section) {
    std::uint64_t elements = 0;
    for (const Operation& operation : section.operations) {
        const auto count = [&](BufferId id) -> std::uint64_t {
            const Buffer& buffer = program.buffers[id];
            const bool narrow = buffer.role == BufferRole::gradients && buffer.dtype == DType::bf16;
            return narrow ? buffer.elements : 0;
        };
        if (const auto* a = std::get_if<Allocate>(&operation.body)) elements += count(a->buffer);
        if (const auto* f = std::get_if<Free>(&operation.body)) elements -= count(f->buffer);
    }
    return elements;
}

TEST(Fsdp1, NoSyncKeepsUnshardedGradientsAndReducesThemOnce) {
    constexpr CollectiveKind scatter = CollectiveKind::reduce_scatter;
    for (const std::uint32_t stage : {2U, 3U}) {
        Scenario scenario = small(EngineKind::fsdp1, stage);
        scenario.training.gradient_accumulation_steps = 4;
        const StepProgram always = first_program(scenario);
        EXPECT_EQ(communicated(always, scatter, GroupKind::shard_group), 4 * model_size);
        scenario.training.fsdp.gradient_sync = GradientSync::last;
        const StepProgram last = first_program(scenario);
        EXPECT_EQ(communicated(last, scatter, GroupKind::shard_group), model_size);
        ASSERT_EQ(last.step.size(), 3U);
        EXPECT_EQ(last.step[1].repeat, 2U);
        EXPECT_EQ(left_by(last, last.step[0]), model_size);
        EXPECT_EQ(left_by(last, last.step[1]), 0U);
        // What forward leaves gathered stays from the first micro-batch to the last one.
        if (stage == 2) {
            EXPECT_EQ(communicated(last, CollectiveKind::all_gather, GroupKind::shard_group), model_size);
        }
    }
}

/// The collectives of the shard group in the order of their issue, backward's of the last section.
std::vector<const Operation*> shard_collectives(const StepProgram& program) {
    std::vector<const Operation*> all;
    for (const Operation& operation : program.step.back().operations)
        if (const auto* c = std::get_if<Collective>(&operation.body))
            if (c->group == GroupKind::shard_group) all.push_back(&operation);
    return all;
}

TEST(Fsdp1, AGatherThatIsNotPrefetchedQueuesBehindTheReduction) {
    // c10d runs a group's collectives in the order of their issue, each behind the one before.
    Scenario scenario = small(EngineKind::fsdp1);
    const auto scatters_before_last_gather = [&](const char* prefetch) {
        scenario.training.fsdp.backward_prefetch = prefetch;
        const StepProgram program = first_program(scenario);
        const auto all = shard_collectives(program);
        std::uint64_t scatters = 0, before_last = 0;
        for (std::size_t i = 0; i < all.size(); ++i) {
            const auto& collective = std::get<Collective>(all[i]->body);
            if (collective.kind == CollectiveKind::all_gather) before_last = scatters;
            if (collective.kind == CollectiveKind::reduce_scatter) ++scatters;
            EXPECT_EQ(all[i]->waits.empty(), i == 0);
        }
        return before_last;
    };
    // Layer 1's gather is issued before layer 2's backward and behind layer 3's reduction, or behind both.
    EXPECT_EQ(scatters_before_last_gather("pre"), 1U);
    EXPECT_EQ(scatters_before_last_gather("none"), 2U);
}

TEST(Fsdp2, GathersAndReductionsRunInTheOrderOfTheirIssue) {
    // One communicator's: backward gathers layer 1 ahead of layer 2's reduction, layer 0 behind it.
    const StepProgram program = first_program(small(EngineKind::fsdp2));
    const std::vector<Operation>& operations = program.step.back().operations;
    const auto all = shard_collectives(program);
    ASSERT_GT(all.size(), 4U);
    for (std::size_t i = 1; i < all.size(); ++i) {
        const auto before = static_cast<OperationId>(all[i - 1] - operations.data());
        EXPECT_EQ(std::count(all[i]->waits.begin(), all[i]->waits.end(), before), 1) << i;
    }
}

}  // namespace
}  // namespace zeroplan
