#include <fmt/format.h>

#include "engines/deepspeed_checks.hpp"
#include "engines/deepspeed_host.hpp"
#include "engines/deepspeed_program.hpp"
#include "engines/deepspeed_stage3.hpp"
#include "engines/engine.hpp"
#include "engines/fsdp2_layout.hpp"
#include "engines/megatron_context.hpp"
#include "engines/muon.hpp"
#include "engines/torch_step.hpp"

namespace zeroplan {
namespace {

/// Programs for the ranks of one pipeline stage, at most. Beyond, ranks whose partitions overlap nearly the
/// same parameters are planned as the one among them that overlaps the most.
constexpr std::size_t most_classes = 8;

/// Megatron-DeepSpeed is a fork of Megatron-LM from before megatron-core.
constexpr MegatronOptions megatron_options{.generation = MegatronGeneration::lm_2021,
                                           .transformer_engine = false,
                                           .gradient_accumulation_fusion = false};

bool runs_megatron(const TrainingConfig& training) {
    return training.tensor_parallel > 1 || training.pipeline_parallel > 1;
}

/// Ranks that share one copy of what the wrapper shards.
std::uint64_t sharing_ranks(const TrainingConfig& training) {
    return deepspeed_wrapper(training) == DeepSpeedWrapper::bf16 ? training.data_parallel
                                                                 : training.shard_group;
}

/// MiCS shards over mics_shard_size ranks, the others hold replicas.
std::uint64_t sharing_ranks(const TrainingConfig& training, const DeepSpeedOptions& options) {
    return options.mics_shard_size > 0 ? options.mics_shard_size : sharing_ranks(training);
}

std::vector<RankRange> shifted(std::vector<RankRange> ranges, std::uint64_t by) {
    for (RankRange& range : ranges) range = {range.first + by, range.last + by};
    return ranges;
}

class Planner {
public:
    explicit Planner(const Scenario& scenario)
        : scenario_(scenario), options_(read_deepspeed_options(scenario)), training_(scenario.training) {
        training_.sequence_length = local_sequence_length(training_);
        output_.allocator = AllocatorKind::caching;
        for (const std::string& text : options_.no_effect) output_.warnings.push_back({"no_effect", text});
        if (training_.optimizer == Optimizer::muon) output_.constants.push_back(newton_schulz_constant());
        output_.rule_set = fmt::format("deepspeed {}.{}", options_.version.major, options_.version.minor);
    }

    /// Communicators that work on every rank: the world; Megatron's tensor-parallel group and the pipeline
    /// grid's own one of the same ranks; data parallel; all of one replica (norms and overflow); a tied
    /// embedding's two stages. Those between two pipeline neighbours are left out. source:
    /// deepspeed/runtime/pipe/topology.py; pipe/module.py, _index_tied_modules
    std::uint64_t communicators() const {
        const bool tensor = training_.tensor_parallel > 1, pipeline = training_.pipeline_parallel > 1;
        return 1 + (tensor ? 2U : 0U) + (training_.data_parallel > 1 ? 1U : 0U) +
               (tensor || pipeline ? 1U : 0U) + (pipeline && ties() ? 1U : 0U);
    }

    EngineOutput plan() {
        if (runs_megatron(training_)) output_.communicators = communicators();
        if (!scenario_.cluster.gpu.is_host)
            output_.constants.push_back(cublas_workspace_constant(scenario_.cluster));
        if (!runs_megatron(training_)) {
            output_.constants.push_back(loading_constant());
            const auto last = static_cast<std::uint32_t>(scenario_.model.blocks.size() - 1);
            plan_stage(scenario_.model, {.blocks = {0, last}});
            warn_of_ratio(scenario_.model, sharing_ranks(training_, options_));
            warn_of_joined_ranks();
            return std::move(output_);
        }
        const auto stages = static_cast<std::uint32_t>(training_.pipeline_parallel);
        for (std::uint32_t stage = 0; stage < stages; ++stage) {
            const StageModel part = megatron_stage_model(
                scenario_, megatron_options, stage_chunks(scenario_.training, scenario_.model.layers, stage));
            plan_stage(part.model, {.stage = stage,
                                    .stages = stages,
                                    .blocks = part.chunks.front(),
                                    .tied_copy = part.tied_copy,
                                    .megatron = true});
        }
        warn_of_joined_ranks();
        return std::move(output_);
    }

private:
    bool ties() const { return megatron_context(scenario_, megatron_options).tied; }
    bool loads_whole() const { return training_.zero_stage < 3 || !options_.zero_init; }

    Constant loading_constant() const {
        if (!loads_whole())
            return {
                "host_load_bytes_per_process", 0, "B",
                "zero.Init partitions parameters as they are made, as from_pretrained under a Trainer has "
                "it; deepspeed.zero_init false: an ordinary module, given to deepspeed.initialize whole",
                "assumption"};
        const std::uint64_t bytes =
            scenario_.model.parameter_count() * bytes_per_element(training_.parameter_dtype);
        return {"host_load_bytes_per_process", static_cast<double>(bytes), "B",
                "every process builds the whole model on the host before it moves to its GPU", "assumption"};
    }

    /// The ratio leaves whole sub-groups to the device.
    void warn_of_ratio(const ModelSpec& model, std::uint64_t ranks) {
        if (training_.zero_stage < 3 || training_.offload_optimizer != OffloadTarget::cpu) return;
        if (training_.offload_fraction == 1) return;
        const std::size_t count = sub_groups(model, ranks, options_.sub_group_size).size();
        if (sub_groups_on_device(training_, count) == 0)
            output_.warnings.push_back(
                {"no_effect",
                 fmt::format("offload_fraction = {} has no effect on {} sub-group(s) of sub_group_size {}: "
                             "DeepSpeed leaves whole ones to the device, (1 - ratio) of them rounded down",
                             training_.offload_fraction, count, options_.sub_group_size)});
    }

    void warn_of_joined_ranks() {
        const std::size_t planned = output_.programs.size();
        if (shares_ > planned)
            output_.warnings.push_back(
                {"ranks_planned_together",
                 fmt::format(
                     "the ranks' partitions overlap the parameters in {} ways: {} of them are planned, "
                     "each also for ranks that hold less",
                     shares_, planned)});
    }

    void plan_stage(const ModelSpec& model, DeepSpeedStagePlace place) {
        place.pipe_engine = place.megatron && training_.zero_stage < 2;
        const std::uint64_t ranks = sharing_ranks(training_, options_);
        const FlatGroup group = flat_group(model, ranks, options_.round_robin_gradients);
        const ShardLayout layout = deepspeed_layout(model, group);
        if (place.stage == 0) output_.layout = layout;
        if (!scenario_.cluster.gpu.is_host)
            place.compute_capability = scenario_.cluster.gpu.compute_capability;
        const std::uint64_t world = scenario_.world_size() / place.stages, first = place.stage * world;
        for (const RankClass& same : classes(group, model, place)) {
            shares_ += same.shares;
            const DeepSpeedRank rank{.model = model,
                                     .training = training_,
                                     .options = options_,
                                     .group = group,
                                     .ranks = ranks,
                                     .rank = same.representative,
                                     .replicas = training_.data_parallel / ranks,
                                     .pipelined = place.pipe_engine,
                                     .share = same.share,
                                     .tied_copy = place.tied_copy};
            output_.programs.push_back(deepspeed_program(rank, place));
            const bool loads_on_host = !place.megatron && loads_whole();
            output_.host.push_back(deepspeed_host(rank, loads_on_host));
            output_.program_ranks.push_back(
                shifted(fsdp2_world_ranks(same.members, ranks, training_.tensor_parallel, world), first));
            if (place.megatron) output_.rank_models.push_back({model, layout, training_.sequence_length});
        }
    }

    std::vector<RankClass> classes(const FlatGroup& group, const ModelSpec& model,
                                   const DeepSpeedStagePlace& place) {
        if (deepspeed_wrapper(training_) == DeepSpeedWrapper::partitioned)
            return ranks_by_share(group, model, std::max<std::size_t>(1, most_classes / place.stages));
        RankClass all;
        for (std::uint64_t r = 0; r < group.ranks; ++r) all.members.push_back(r);
        return {all};
    }

    const Scenario& scenario_;
    DeepSpeedOptions options_;
    TrainingConfig training_;
    EngineOutput output_;
    std::size_t shares_ = 0;  ///< different ones among the ranks of every stage
};

}  // namespace

DeepSpeedWrapper deepspeed_wrapper(const TrainingConfig& training) {
    const bool full = bytes_per_element(training.parameter_dtype) == 4;
    const bool wide = bytes_per_element(training.gradient_dtype) == 4;
    const bool bf16 = training.parameter_dtype == DType::bf16;
    if (training.zero_stage == 3) return DeepSpeedWrapper::stage3;
    if (training.zero_stage == 2) return DeepSpeedWrapper::partitioned;
    if (training.zero_stage == 1)
        return bf16 && wide && training.offload_optimizer == OffloadTarget::none
                   ? DeepSpeedWrapper::bf16
                   : DeepSpeedWrapper::partitioned;
    if (full) return DeepSpeedWrapper::plain;
    return bf16 && (wide || training.pipeline_parallel > 1) ? DeepSpeedWrapper::bf16
                                                            : DeepSpeedWrapper::fused;
}

EngineOutput deepspeed_engine(const Scenario& scenario) {
    check_deepspeed(scenario);
    return Planner(scenario).plan();
}

}  // namespace zeroplan
