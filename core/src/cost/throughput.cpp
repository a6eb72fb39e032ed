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
    return result;
}

}  // namespace zeroplan
