#include "zeroplan/goodput.hpp"

#include <cmath>

#include "zeroplan/error.hpp"

namespace zeroplan {
namespace {

double mtbf_s(const ClusterSpec& cluster, const Failures& failures) {
    const auto gpus = static_cast<double>(cluster.gpus_used);
    const std::uint64_t nodes = (cluster.gpus_used + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
    double failures_per_s = 0;
    if (failures.gpu_mtbf_s > 0) failures_per_s += gpus / failures.gpu_mtbf_s;
    if (failures.node_mtbf_s > 0) failures_per_s += static_cast<double>(nodes) / failures.node_mtbf_s;
    return 1 / failures_per_s;
}

}  // namespace

double expected_goodput(const CheckpointedRun& run, double interval_s) {
    if (!(interval_s > 0)) return 0;
    const double m = run.mtbf_s;
    return interval_s / (m * std::exp(run.restart_s / m) * std::expm1((interval_s + run.checkpoint_s) / m));
}

double young_interval_s(const CheckpointedRun& run) {
    return std::sqrt(2 * run.checkpoint_s * run.mtbf_s);
}

double daly_interval_s(const CheckpointedRun& run) {
    const double share = run.checkpoint_s / (2 * run.mtbf_s);
    if (share >= 1) return run.mtbf_s;
    return young_interval_s(run) * (1 + std::sqrt(share) / 3 + share / 9) - run.checkpoint_s;
}

/// With x = τ/M the derivative of e^{x+δ/M} − 1 over x vanishes where ln(1 − x) + x + δ/M does, which falls
/// from δ/M at x = 0 to −∞ at x = 1.
double best_interval_s(const CheckpointedRun& run) {
    const double share = run.checkpoint_s / run.mtbf_s;
    double low = 0, high = 1;
    for (int halvings = 0; halvings < 200; ++halvings) {
        const double x = (low + high) / 2;
        (std::log1p(-x) + x + share > 0 ? low : high) = x;
    }
    return run.mtbf_s * (low + high) / 2;
}

double checkpoint_bytes(const Scenario& scenario) {
    const TrainingConfig& training = scenario.training;
    const auto all = static_cast<double>(scenario.model.parameter_count());
    const auto trained = static_cast<double>(scenario.model.trainable_parameter_count());
    const auto size = [](DType dtype) { return static_cast<double>(bytes_per_element(dtype)); };
    const double states = optimizer_state_tensors(training.optimizer) * size(training.optimizer_state_dtype);
    const double master = training.master_dtype ? size(*training.master_dtype) : 0;
    return all * size(training.parameter_dtype) + trained * (master + states);
}

Goodput goodput(const Plan& plan, const Failures& failures) {
    Goodput result;
    result.checkpoint_bytes =
        failures.checkpoint_bytes ? *failures.checkpoint_bytes : checkpoint_bytes(plan.scenario);
    result.checkpoint_s = result.checkpoint_bytes / failures.checkpoint_bytes_per_s;
    result.restart_s = failures.restart_s;
    result.mtbf_s = mtbf_s(plan.scenario.cluster, failures);
    const CheckpointedRun run{result.mtbf_s, result.checkpoint_s, result.restart_s};
    result.best_interval_s = best_interval_s(run);
    result.young_interval_s = young_interval_s(run);
    result.daly_interval_s = daly_interval_s(run);
    result.best_goodput = expected_goodput(run, result.best_interval_s);
    result.young_goodput = expected_goodput(run, result.young_interval_s);
    result.daly_goodput = expected_goodput(run, result.daly_interval_s);
    result.interval_is_given = failures.checkpoint_interval_s.has_value();
    result.interval_s = failures.checkpoint_interval_s.value_or(result.best_interval_s);
    result.goodput = expected_goodput(run, result.interval_s);
    return result;
}

}  // namespace zeroplan
