#pragma once
#include <vector>

#include "zeroplan/cluster_spec.hpp"
#include "zeroplan/contention.hpp"
#include "zeroplan/model_spec.hpp"
#include "zeroplan/plan.hpp"
#include "zeroplan/step_program.hpp"
#include "zeroplan/training_config.hpp"

namespace zeroplan {

namespace cost {
struct Constants;
}

/// Every number that the cost model rests on beside a GPU's and a network's public figures; the same for all
/// models, clusters and engines, but for those that `calibration` replaces.
std::vector<Constant> cost_constants(const Calibration& calibration = {});

/// What one operation on a compute unit does and how long it takes when it runs alone.
struct WorkCost {
    double flops = 0;                           ///< floating-point operations
    double bytes = 0;                           ///< read and written in device memory
    double seconds = 0;                         ///< max(flops / rate, bytes / rate) + kernel starts
    double multiprocessor_s = 0, memory_s = 0;  ///< of `seconds`: what the one or the other bounds
    WorkTime time() const { return {seconds, multiprocessor_s, memory_s}; }
    friend bool operator==(const WorkCost&, const WorkCost&) = default;
};

/// Factors on durations by what bounds them, for the ends of the interval.
struct WorkScale {
    double products = 1, attention = 1, memory = 1, offload = 1;
    friend bool operator==(const WorkScale&, const WorkScale&) = default;
};

/// Times the operations of one scenario's programs: roofline of every operator, bytes of everything else.
/// Holds references: model, layout and program must outlive it.
class CostModel {
public:
    /// Throws Error{not_supported} if the GPU lacks the compute dtype, naming both.
    CostModel(const ModelSpec& model, const TrainingConfig& training, const ClusterSpec& cluster,
              const ShardLayout& layout, const StepProgram& program, const WorkScale& scale = {});

    WorkCost cost(const Compute& compute) const;
    WorkCost cost(const OptimizerStep& step) const;
    /// Timed as an addition, also in the first micro-batch, where it is a copy.
    WorkCost cost(const Accumulate& accumulate) const;
    /// Host time: the batch is copied to the device before the micro-batch starts.
    WorkCost cost(const LoadBatch& load) const;
    /// At PCIe's rate, or the rank's share of the host's memory or drive, whichever is less.
    double seconds(const HostCopy& copy) const;
    /// At the rank's share of the host's memory or cores.
    double seconds(const HostStep& step) const;
    /// One kernel that reads and writes `bytes`.
    double copy_seconds(double bytes) const { return roofline(0, 1, 2 * bytes, 1).seconds; }

private:
    struct Rates {
        double linear_flop_per_s = 0, wide_linear_flop_per_s = 0;  ///< the latter in 16 bit under fp8
        double orthogonalising_flop_per_s = 0;                     ///< Muon's products, in bf16
        double attention_flop_per_s = 0, attention_backward_flop_per_s = 0;
        double memory_bytes_per_s = 0, upload_bytes_per_s = 0, kernel_start_s = 0;
        double pinned_bytes_per_s = 0, pageable_bytes_per_s = 0, nvme_bytes_per_s = 0;  ///< of a rank
        double host_step_bytes_per_s = 0;
    };
    double buffer_bytes(BufferId buffer) const;
    double operand_elements(const Operand& operand) const;
    double parameter_elements(const Compute& compute, const Operator& op) const;
    double argument_bytes(const Compute& compute, const Operator& op, const Argument& argument) const;
    double flop_rate(const Operator& op, ComputePhase phase, bool fp8) const;
    /// Rows of one of an operator's `products`: experts have one each.
    double product_rows(const Operator& op, double products) const;
    double product_efficiency(const Operator& op, ComputePhase phase, double products) const;
    double cast_seconds(const Operator& op, ComputePhase phase, double products) const;
    WorkCost roofline(double flops, double flop_per_s, double bytes, double kernels) const;
    void add_newton_schulz(WorkCost& cost, const Orthogonalised& matrix) const;

    const ModelSpec& model_;
    const TrainingConfig& training_;
    const ShardLayout& layout_;
    const StepProgram& program_;
    void set_offload_rates(const ClusterSpec& cluster, double scale);

    const cost::Constants* constants_;
    Rates rates_;
    double fp8_cast_bytes_ = 0;  ///< an element of an operand
};

}  // namespace zeroplan
