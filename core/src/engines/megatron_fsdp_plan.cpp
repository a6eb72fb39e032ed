#include "engines/megatron_fsdp_plan.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "engines/megatron_buffer.hpp"
#include "engines/megatron_layer.hpp"
#include "engines/megatron_state.hpp"
#include "zeroplan/units.hpp"

namespace zeroplan {
namespace {

/// Least size of the two pipelines' windows, elements: MegatronFSDP.__init__ takes the larger of this and two
/// units.
constexpr std::uint64_t least_communication_unit = 1'000'000'000;

void check(const Scenario& scenario, const MegatronOptions& options, bool replicated) {
    const TrainingConfig& training = scenario.training;
    if (options.generation == MegatronGeneration::lm_2021)
        throw Error(ErrorCode::invalid_input,
                    fmt::format("engine megatron_fsdp came with megatron-core, but engine_version is '{}'",
                                training.engine_version),
                    "leave engine_version out, or choose engine megatron", {"", "/training/engine_version"});
    const std::uint64_t together = layers_recomputed_together(training, options);
    if (together > 1)
        throw Error(
            ErrorCode::not_supported,
            fmt::format("{} layers recomputed together span as many FSDP units, which is not modelled",
                        together),
            "set recompute_every (recompute_num_layers) to 1", {"", "/training/recompute_every"});
    const bool experts = scenario.model.decoder && scenario.model.decoder->experts;
    if (replicated && experts)
        throw Error(ErrorCode::not_supported,
                    fmt::format("experts under a shard_group of {} with replicas are not modelled",
                                training.shard_group),
                    "leave shard_group out", {"", "/training/shard_group"});
}

}  // namespace

MegatronFsdpPlan megatron_fsdp_plan(const Scenario& scenario, const MegatronOptions& options,
                                    std::uint64_t average_unit) {
    const TrainingConfig& training = scenario.training;
    const MegatronStatePlan state = megatron_state_plan(scenario, options);
    const std::uint64_t replicas = training.data_parallel * training.context_parallel;
    MegatronFsdpPlan plan{.shards = state.shards,
                          .expert_shards = state.expert_shards,
                          .replicated = training.zero_stage > 0 && state.shards < replicas,
                          .shards_parameters = training.zero_stage >= 3,
                          .shards_gradients = training.zero_stage >= 2,
                          .shards_states = training.zero_stage >= 1,
                          .parameters = state.parameters,
                          .gradients = state.gradients,
                          .reduced = training.reduce_dtype,
                          .master = state.master,
                          .main_gradients = state.main_gradients,
                          .states = state.states,
                          .double_buffers = options.fsdp_double_buffer};
    check(scenario, options, plan.replicated);
    plan.overlaps_reduce = options.overlap_grad_reduce || plan.shards_gradients;
    plan.overlaps_gather = options.overlap_param_gather || plan.shards_parameters;
    if (plan.overlaps_reduce)
        plan.bucket_size = options.ddp_bucket_size.value_or(default_bucket_size(replicas));
    const std::uint64_t wanted =
        plan.shards_parameters ? 2 * average_unit : plan.bucket_size.value_or(least_communication_unit);
    plan.communication_unit_size =
        options.suggested_communication_unit_size.value_or(std::max(least_communication_unit, wanted));
    return plan;
}

}  // namespace zeroplan
