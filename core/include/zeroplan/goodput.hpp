#pragma once
#include "zeroplan/plan.hpp"
#include "zeroplan/what_if_report.hpp"

namespace zeroplan {

/// A job that fails at exponentially distributed times, `mtbf_s` apart on average, and writes checkpoints.
struct CheckpointedRun {
    double mtbf_s = 0;        ///< above 0
    double checkpoint_s = 0;  ///< the job stands still while it writes one
    double restart_s = 0;     ///< after a failure, and again after one that comes before it is over
    friend bool operator==(const CheckpointedRun&, const CheckpointedRun&) = default;
};

/// Share of the time that is spent on work that is kept, with `interval_s` of work between checkpoints:
/// τ / (M e^{R/M} (e^{(τ+δ)/M} − 1)). Exact for such a job, by renewal at every checkpoint (Daly, "A higher
/// order estimate of the optimum checkpoint interval for restart dumps", FGCS 22, 2006, its complete model;
/// Herault and Robert, "Fault-Tolerance Techniques for High-Performance Computing", 2015, proposition 1.1).
double expected_goodput(const CheckpointedRun& run, double interval_s);

/// √(2δM): J. W. Young, "A first order approximation to the optimum checkpoint interval", CACM 17, 1974.
double young_interval_s(const CheckpointedRun& run);
/// √(2δM) (1 + ⅓√(δ/2M) + ⅑ δ/2M) − δ for δ < 2M, else M: Daly 2006.
double daly_interval_s(const CheckpointedRun& run);
/// Where expected_goodput() is highest: M (1 + W(−e^{−1−δ/M})), W being Lambert's function.
double best_interval_s(const CheckpointedRun& run);

/// Bytes of a checkpoint: parameters, master weights and optimizer states, each element once however many
/// replicas there are. Throws Error{not_supported} for an optimizer whose states are not modelled.
double checkpoint_bytes(const Scenario& scenario);

/// Failures of the plan's GPUs and nodes, each at its own rate, any of which stops the whole job.
Goodput goodput(const Plan& plan, const Failures& failures);

}  // namespace zeroplan
