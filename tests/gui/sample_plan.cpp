#include "gui/sample_plan.hpp"

namespace zeroplan::gui::test {

namespace {

ModelSpec sample_model() {
    ModelSpec model;
    model.name = "sample";
    BlockKind kind;
    kind.name = "layer";
    kind.tensors = {{"input", {1, 0, 0}}, {"output", {1, 0, 0}}};
    Operator linear;
    linear.name = "mlp.up_proj";
    linear.kind = OperatorKind::linear;
    kind.operators = {linear};
    kind.output = 1;
    kind.is_layer = true;
    model.block_kinds = {kind};
    model.blocks = {{"layers.0", 0, {}}, {"layers.1", 0, {}}};
    return model;
}

enum Buffers : BufferId { parameters, gradients, activation_0, activation_1, workspace };

std::vector<Buffer> buffers(const SampleGroup& group) {
    const auto buffer = [](BufferRole role, Category category, std::uint32_t owner, std::uint64_t bytes) {
        return Buffer{role, category, DType::uint8, owner, 1, bytes};
    };
    return {buffer(BufferRole::parameters, Category::parameters, 0, 1024),
            buffer(BufferRole::gradients, Category::gradients, 0, 512),
            buffer(BufferRole::activation, Category::activations, 0, group.activations / 2),
            buffer(BufferRole::activation, Category::activations, 1, group.activations / 2),
            buffer(BufferRole::workspace, Category::temporaries, 0, group.allocated_extra)};
}

Operation compute(std::uint32_t block, ComputePhase phase) {
    Compute body;
    body.block = block;
    body.phase = phase;
    return {body, Stream::compute, {}};
}

Operation gather(std::uint32_t unit) {
    Collective body;
    body.unit = unit;
    body.elements = 512;
    body.dtype = DType::bf16;
    return {body, Stream::gather, {}};
}

Section micro_batch(const char* name, std::uint64_t repeat, bool extra) {
    Section section{name, repeat, {}};
    auto& ops = section.operations;
    ops.push_back(gather(0));
    ops.push_back({Allocate{activation_0}, Stream::compute, {}});
    ops.push_back(compute(0, ComputePhase::forward));
    ops.push_back({Allocate{activation_1}, Stream::compute, {}});
    if (extra) ops.push_back({Allocate{workspace}, Stream::compute, {}});
    ops.push_back(compute(1, ComputePhase::forward));
    if (extra) ops.push_back({Free{workspace}, Stream::compute, {}});
    ops.push_back(compute(1, ComputePhase::backward));
    ops.push_back({Free{activation_1}, Stream::compute, {}});
    ops.push_back(compute(0, ComputePhase::backward));
    ops.push_back({Free{activation_0}, Stream::compute, {}});
    return section;
}

StepProgram sample_program(const SampleGroup& group) {
    StepProgram program;
    program.buffers = buffers(group);
    program.load = {"load", 1, {{Allocate{parameters}, Stream::compute, {}}}};
    program.init = {"init", 1, {{Allocate{gradients}, Stream::compute, {}}}};
    program.save = {"save", 1, {}};
    const bool extra = group.allocated_extra > 0;
    program.step = {micro_batch("micro_batch", 2, extra), micro_batch("last_micro_batch_and_step", 1, extra)};
    program.step.back().operations.push_back({OptimizerStep{}, Stream::compute, {}});
    return program;
}

RankGroup sample_rank_group(const StepProgram& program, std::uint32_t index, const SampleGroup& group) {
    RankGroup out;
    out.ranks = group.ranks;
    out.program = index;
    const std::vector<BufferId> resident{parameters, gradients};
    out.steady = memory_peak(program, program.step, resident);
    out.peak_active = out.steady.allocated;
    out.peak_reserved = out.steady.allocated + Bytes{group.slack};
    out.runtime = Bytes{group.runtime};
    out.peak_device = out.peak_reserved + out.runtime;
    out.resident = Bytes{1536};
    out.phases = {{Phase::steady_step, out.steady.allocated, out.peak_reserved, {}}};
    return out;
}

}  // namespace

Plan sample_plan(const std::vector<SampleGroup>& groups, std::uint64_t capacity) {
    Plan plan;
    plan.scenario.model = sample_model();
    plan.rule_set = "sample";
    plan.layout.units = {{"layers.0", 0, {}, 0, 0, {}}, {"layers.1", 1, {}, 0, 0, {}}};
    std::uint64_t ranks = 0;
    for (const SampleGroup& group : groups) {
        plan.programs.push_back(sample_program(group));
        plan.rank_groups.push_back(sample_rank_group(
            plan.programs.back(), static_cast<std::uint32_t>(plan.programs.size() - 1), group));
        for (const RankRange& range : group.ranks) ranks += range.last - range.first + 1;
        if (plan.rank_groups.back().peak_device > plan.memory.overall_peak_device) {
            plan.memory.overall_peak_device = plan.rank_groups.back().peak_device;
            plan.memory.worst_group = static_cast<std::uint32_t>(plan.rank_groups.size() - 1);
            plan.memory.peak_rank = group.ranks.front().first;
        }
    }
    plan.scenario.cluster.gpus_used = ranks;
    plan.scenario.cluster.gpus_per_node = 8;
    plan.scenario.cluster.nodes = (ranks + 7) / 8;
    plan.memory.capacity = Bytes{capacity};
    plan.memory.low = plan.memory.high = plan.memory.overall_peak_device;
    plan.memory.verdict = plan.memory.high <= plan.memory.capacity ? Verdict::fits : Verdict::does_not_fit;
    plan.memory.peak_operation = "forward layers.1 mlp.up_proj";
    return plan;
}

std::shared_ptr<const Plan> shared_sample_plan(const std::vector<SampleGroup>& groups,
                                               std::uint64_t capacity) {
    return std::make_shared<const Plan>(sample_plan(groups, capacity));
}

Plan uniform_plan(std::uint64_t ranks) {
    return sample_plan({{{{0, ranks - 1}}, 2048, 0, 256, 4096}}, 16384);
}

StepTimeline sample_timeline(const Plan& plan) {
    StepTimeline timeline;
    double now = 0;
    const auto& step = plan.programs[0].step;
    for (std::uint32_t s = 0; s < step.size(); ++s)
        for (std::uint64_t i = 0; i < step[s].repeat; ++i)
            for (OperationId o = 0; o < step[s].operations.size(); ++o) {
                const Operation& operation = step[s].operations[o];
                if (std::holds_alternative<Allocate>(operation.body) ||
                    std::holds_alternative<Free>(operation.body))
                    continue;
                timeline.operations.push_back({s, i, o, operation.stream, now, now + 1e-3});
                now += 1e-3;
            }
    timeline.step_time_s = now;
    timeline.fidelity = "closed form";
    return timeline;
}

}  // namespace zeroplan::gui::test
