#include <algorithm>

#include "zeroplan/step_timeline.hpp"

namespace zeroplan {
namespace {

bool counts_as_model_flops(OperatorKind kind) {
    return kind == OperatorKind::linear || kind == OperatorKind::attention ||
           kind == OperatorKind::attention_scores || kind == OperatorKind::attention_values;
}

/// Matrix products and attention of one forward pass over a micro-batch.
double forward_flops(const ModelSpec& model, const TrainingConfig& training) {
    std::vector<double> by_kind;
    for (const BlockKind& kind : model.block_kinds) {
        double flops = 0;
        for (const Operator& op : kind.operators)
            if (counts_as_model_flops(op.kind))
                flops += operations(op.forward_flops, training.micro_batch_size, training.sequence_length);
        by_kind.push_back(flops);
    }
    double sum = 0;
    for (const Block& block : model.blocks) sum += by_kind[block.kind];
    return sum;
}

/// Products and attention that forward passes and that recomputation execute in a step, all ranks together.
struct Executed {
    double forward = 0, recomputed = 0;
};

Executed executed_flops(const Plan& plan) {
    Executed sum;
    for (const RankGroup& group : plan.rank_groups) {
        double ranks = 0;
        for (const RankRange& range : group.ranks) ranks += static_cast<double>(range.last - range.first + 1);
        const ModelSpec& model = model_of(plan, group.program);
        const std::uint64_t sequence = sequence_length_of(plan, group.program);
        for (const Section& section : plan.programs[group.program].step)
            for (const Operation& operation : section.operations) {
                const auto* compute = std::get_if<Compute>(&operation.body);
                if (compute == nullptr || compute->phase == ComputePhase::backward) continue;
                const Operator& op =
                    model.block_kinds[model.blocks[compute->block].kind].operators[compute->op];
                if (!counts_as_model_flops(op.kind)) continue;
                const double flops =
                    ranks * static_cast<double>(section.repeat) *
                    operations(op.forward_flops, plan.scenario.training.micro_batch_size, sequence);
                (compute->phase == ComputePhase::forward ? sum.forward : sum.recomputed) += flops;
            }
    }
    return sum;
}

}  // namespace

Throughput throughput(const Plan& plan, double step_time_s) {
    if (!(step_time_s > 0)) return {};
    const TrainingConfig& training = plan.scenario.training;
    const auto world = static_cast<double>(plan.scenario.world_size());
    // What one GPU does of a step: ranks of one model-parallel group share their micro-batches.
    const double micro_batches = static_cast<double>(training.gradient_accumulation_steps) *
                                 static_cast<double>(training.data_parallel) / world;
    const double samples = static_cast<double>(training.micro_batch_size) * micro_batches;
    const bool tokens = plan.scenario.model.batch == BatchKind::tokens;
    const double units = tokens ? samples * static_cast<double>(training.sequence_length) : samples;

    Throughput result;
    result.tokens_per_s_per_gpu = units / step_time_s;
    result.model_flop_per_s_per_gpu =
        3 * forward_flops(plan.scenario.model, training) * micro_batches / step_time_s;
    const double peak = peak_flop_per_s(plan.scenario.cluster.gpu, training.compute_dtype);
    result.mfu = peak > 0 ? result.model_flop_per_s_per_gpu / peak : 0;
    const Executed executed = executed_flops(plan);
    const double recomputed = executed.forward > 0 ? executed.recomputed / executed.forward : 0;
    result.hardware_flop_per_s_per_gpu = result.model_flop_per_s_per_gpu * (1 + recomputed / 3);
    result.hfu = result.mfu * (1 + recomputed / 3);
    return result;
}

}  // namespace zeroplan
