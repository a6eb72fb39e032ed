#pragma once
#include "core/cost/random_program.hpp"
#include "core/cost/tiny_plan.hpp"
#include "engines/pipeline_schedule.hpp"

namespace zeroplan::test {

/// A pipeline whose stages' forward and backward passes take the time of `forward` and twice `forward`
/// elements of work (stage s: times scale[s]), with messages of `message` elements between them; one stage a
/// node, every micro-batch written out.
inline Plan pipeline_plan(const std::vector<std::uint64_t>& scale, std::uint32_t micro_batches,
                          std::uint64_t forward, std::uint64_t message) {
    const auto stages = static_cast<std::uint32_t>(scale.size());
    Plan plan = test_plan(test_cluster(stages), {}, work_buffers);
    plan.scenario.training.engine = EngineKind::megatron;
    plan.scenario.training.pipeline_parallel = stages;
    plan.scenario.training.data_parallel = plan.scenario.training.shard_group = 8;
    plan.layout.shard_group = 8;
    const StepProgram empty = plan.programs.front();
    plan.programs.clear();
    plan.rank_groups.clear();
    for (std::uint32_t s = 0; s < stages; ++s) {
        StepProgram& program = plan.programs.emplace_back(empty);
        program.step = {{"step", 1, {}}};
        const auto transfer = [&](bool send, std::uint32_t lower, bool gradients) {
            program.step[0].operations.push_back(
                on(Stream::compute, Transfer{.send = send,
                                             .channel = 2 * lower + gradients,
                                             .dtype = DType::bf16,
                                             .elements = message,
                                             .to_next = !gradients}));
        };
        for (const PipelineAction& action :
             pipeline_schedule({.stages = stages, .micro_batches = micro_batches}, s)) {
            const bool first = s == 0, last = s + 1 == stages;
            if (action.forward && !first) transfer(false, s - 1, false);
            if (!action.forward && !last) transfer(false, s, true);
            program.step[0].operations.push_back(
                on(Stream::compute, work(scale[s] * forward * (action.forward ? 1 : 2))));
            if (action.forward && !last) transfer(true, s, false);
            if (!action.forward && !first) transfer(true, s - 1, true);
        }
        RankGroup group;
        group.ranks = {{8ULL * s, 8ULL * s + 7}};
        group.program = s;
        plan.rank_groups.push_back(group);
    }
    return plan;
}

}  // namespace zeroplan::test
