#pragma once
#include <cstdint>
#include <optional>

#include "zeroplan/cluster_spec.hpp"
#include "zeroplan/error.hpp"
#include "zeroplan/model_spec.hpp"
#include "zeroplan/training_config.hpp"

namespace zeroplan {

/// What an engine's own object (`deepspeed`, `fsdp`) says about keys of `training`.
struct OwnWords {
    std::optional<std::uint32_t> zero_stage;
    const char* zero_stage_key = "";  ///< "deepspeed.zero_optimization.stage"
    std::optional<DType> gradient_dtype, reduce_dtype;
};

/// A stated `master_dtype`.
enum class StatedMaster : std::uint8_t { fp32, none };

/// `training` as the user stated it: keys with fixed defaults are in `config` already, the others are here
/// until engine, model and cluster are known.
struct TrainingInput {
    TrainingConfig config;
    std::optional<std::uint32_t> zero_stage;
    std::optional<std::uint64_t> data_parallel, shard_group, expert_tensor_parallel, sequence_length;
    std::optional<PipelineSchedule> pipeline_schedule;
    std::optional<DType> parameter_dtype, gradient_dtype, reduce_dtype;
    std::optional<StatedMaster> master_dtype;
    std::optional<Kernels> kernels;
    OwnWords own;
    ErrorPlace place;  ///< of the `training` object
};

/// Fills in what depends on the engine alone: ZeRO stage, dtypes, kernels, schedule, gradient synchronisation
/// (native-and-defaults, sections 1 and 2). Throws Error{invalid_input} for a stage that the engine hasn't
/// got or that contradicts its own object.
TrainingConfig with_engine_defaults(const TrainingInput& input);

/// Fills in degrees and sequence length and checks them against the ranks and the model: the degrees' product
/// is the world size, groups divide what they are part of, layers fit the stages. `config` comes from
/// with_engine_defaults.
TrainingConfig fitted(TrainingConfig config, const TrainingInput& input, const ModelSpec& model,
                      const ClusterSpec& cluster);

/// Throws Error{invalid_input} if the GPU has no matrix products in the compute dtype, naming one it has.
void check_compute_dtype(const TrainingConfig& config, const GpuSpec& gpu, const ErrorPlace& training);

}  // namespace zeroplan
