#pragma once
#include <algorithm>
#include <vector>

#include "core/cost/random_program.hpp"
#include "core/cost/tiny_plan.hpp"

namespace zeroplan::test {

/// True for each forward, false for each backward of a stage under 1F1B: forwards until the last stage can
/// send a gradient back, then one of each in turn, then the backwards left over.
inline std::vector<bool> one_forward_one_backward(std::uint32_t stages, std::uint32_t stage,
                                                  std::uint32_t micro_batches) {
    const std::uint32_t warm_up = std::min(stages - 1 - stage, micro_batches);
    std::vector<bool> forwards(warm_up, true);
    for (std::uint32_t m = warm_up; m < micro_batches; ++m) forwards.insert(forwards.end(), {true, false});
    forwards.insert(forwards.end(), warm_up, false);
    return forwards;
}

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
        for (const bool goes_forward : one_forward_one_backward(stages, s, micro_batches)) {
            const bool first = s == 0, last = s + 1 == stages;
            if (goes_forward && !first) transfer(false, s - 1, false);
            if (!goes_forward && !last) transfer(false, s, true);
            program.step[0].operations.push_back(
                on(Stream::compute, work(scale[s] * forward * (goes_forward ? 1 : 2))));
            if (goes_forward && !last) transfer(true, s, false);
            if (!goes_forward && !first) transfer(true, s - 1, true);
        }
        RankGroup group;
        group.ranks = {{8ULL * s, 8ULL * s + 7}};
        group.program = s;
        plan.rank_groups.push_back(group);
    }
    return plan;
}

/// The same where the first and the last stage each hold a copy of an embedding of `elements` (bf16), whose
/// gradients they sum at the end.
inline Plan tied_pipeline_plan(const std::vector<std::uint64_t>& scale, std::uint32_t micro_batches,
                               std::uint64_t forward, std::uint64_t elements) {
    Plan plan = pipeline_plan(scale, micro_batches, forward, 1000);
    Collective reduction = all_gather(elements, GroupKind::embedding_group);
    reduction.kind = CollectiveKind::all_reduce;
    for (const std::size_t stage : {std::size_t{0}, scale.size() - 1}) {
        std::vector<Operation>& operations = plan.programs[stage].step[0].operations;
        const auto last = static_cast<OperationId>(operations.size() - 1);
        operations.push_back(on(Stream::reduce, reduction, {last}));
    }
    return plan;
}

}  // namespace zeroplan::test
