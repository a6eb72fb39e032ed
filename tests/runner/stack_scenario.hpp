#pragma once
#include "zeroplan/build_model.hpp"
#include "zeroplan/plan.hpp"

namespace zeroplan::runner {

/// A job of this machine's ranks; the tutorial job unless something else is said.
struct StackJob {
    std::vector<StackLayer> layers{{100, 100, true, ActivationFunction::none},
                                   {100, 100, true, ActivationFunction::none}};
    std::string loss = "mse";
    std::uint64_t ranks = 1;
    std::uint32_t zero_stage = 0;
    std::uint64_t shard_group = 0;  ///< 0: all ranks
    DType dtype = DType::fp32;
    Optimizer optimizer = Optimizer::sgd;
    std::uint64_t micro_batch_size = 32, gradient_accumulation_steps = 1;
    std::optional<GradientSync> gradient_sync;
    std::string data;  ///< "": synthetic, 200 samples
    std::uint64_t epochs = 2;
    double learning_rate = 0.01;
};

inline Scenario scenario_of(const StackJob& job) {
    Scenario scenario;
    scenario.model = build_plain_stack("stack", job.layers, job.loss);
    TrainingConfig& training = scenario.training;
    training.zero_stage = job.zero_stage;
    training.data_parallel = job.ranks;
    training.shard_group = job.zero_stage == 0 ? 1 : job.shard_group == 0 ? job.ranks : job.shard_group;
    training.micro_batch_size = job.micro_batch_size;
    training.gradient_accumulation_steps = job.gradient_accumulation_steps;
    training.compute_dtype = training.parameter_dtype = training.gradient_dtype = training.reduce_dtype =
        job.dtype;
    training.master_dtype = is_16_bit(job.dtype) ? std::optional(DType::fp32) : std::nullopt;
    training.optimizer = job.optimizer;
    training.fsdp.gradient_sync = job.gradient_sync;
    ClusterSpec& cluster = scenario.cluster;
    cluster.topology = "host";
    cluster.nodes = 1;
    cluster.gpus_per_node = 64;
    cluster.gpus_used = job.ranks;
    cluster.gpu.name = "host-cpu";
    cluster.gpu.is_host = true;
    cluster.gpu.memory_usable = Bytes{4ULL << 30};
    cluster.gpu.fp32_flop_per_s = cluster.gpu.bf16_flop_per_s = cluster.gpu.hbm_bytes_per_s = 1e10;
    cluster.intra_node = IntraNode::shared_memory;
    scenario.run.data =
        job.data.empty() ? "synthetic:200x" + std::to_string(job.layers.front().in) : job.data;
    scenario.run.epochs = job.epochs;
    scenario.run.learning_rate = job.learning_rate;
    return scenario;
}

}  // namespace zeroplan::runner
