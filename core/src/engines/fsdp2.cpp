#include <memory>
#include <utility>

#include "engines/engine.hpp"
#include "engines/fsdp2_blocks.hpp"
#include "engines/fsdp2_layout.hpp"
#include "engines/fsdp2_pipeline.hpp"
#include "engines/muon.hpp"
#include "engines/torch_checks.hpp"
#include "engines/torch_host.hpp"
#include "engines/torch_parallel.hpp"
#include "engines/torch_step.hpp"
#include "engines/torch_units.hpp"

namespace zeroplan {
namespace {

/// The program of one rank. source: torch/distributed/fsdp/_fully_shard (PyTorch 2.6)
class Fsdp2Program {
public:
    Fsdp2Program(const Scenario& scenario, const TorchUnits& units, std::uint64_t rank)
        : Fsdp2Program(scenario, units, rank, nullptr, 0) {}
    /// One pipeline stage: its number and what it holds.
    Fsdp2Program(const TorchStage& stage, std::uint64_t number, const TorchUnits& units)
        : Fsdp2Program(stage.scenario, units, 0, &stage, number) {}

    StepProgram build() {
        build_load();
        build_init();
        program_.step.reserve(2);
        if (pipeline_ != nullptr) {
            build_pipeline_step();
        } else {
            if (const std::uint64_t several = rank_.micro_batches(); several > 1)
                build_micro_batch({"micro_batch", several - 1, {}}, false);
            build_micro_batch({"last_micro_batch_and_step", 1, {}}, true);
        }
        program_.first_step = first_step_of(program_.step, optimizer_.states(), step_position_);
        program_.save = {"save", 1, {}};
        return std::move(program_);
    }

    HostPhases host() const {
        const TrainingConfig& training = rank_.training();
        std::vector<OffloadedShard> shards;
        for (const TorchUnit& unit : rank_.units().units)
            for (const std::uint32_t p : unit.parameters) {
                const std::uint64_t padded = rank_.padded(p);
                const StoredAs as = rank_.stored(p);
                shards.push_back({as.elements(padded) * bytes_per_element(as.dtype),
                                  rank_.model().parameters[p].trainable
                                      ? padded * bytes_per_element(training.gradient_dtype)
                                      : 0});
            }
        return fsdp_host(training, shards, optimizer_.host_bytes());
    }

private:
    Fsdp2Program(const Scenario& scenario, const TorchUnits& units, std::uint64_t rank,
                 const TorchStage* stage, std::uint64_t number)
        : rank_(scenario, units, rank, stage != nullptr),
          builder_(program_),
          optimizer_(rank_.training(), builder_),
          shard_group_(builder_),
          parameters_(rank_, builder_, shard_group_),
          gradients_(rank_, builder_, shard_group_),
          blocks_(rank_, builder_, parameters_, gradients_) {
        if (stage != nullptr)
            pipeline_ = std::make_unique<Fsdp2Pipeline>(*stage, number, rank_, builder_, parameters_,
                                                        gradients_, blocks_);
    }

    void build_load() {
        program_.load = {"load", 1, {}};
        builder_.begin(program_.load);
        parameters_.load(optimizer_);
        workspace_ = allocate_cublas_workspaces(builder_, rank_.cluster().gpu.compute_capability);
    }

    void build_init() {
        program_.init = {"init", 1, {}};
        builder_.begin(program_.init);
        if (pipeline_ != nullptr) pipeline_->allocate_received();
        gradients_.allocate_resident();
    }

    void build_micro_batch(Section section, bool last) {
        program_.step.push_back(std::move(section));
        builder_.begin(program_.step.back());
        const std::unique_ptr<ActivationWalk> walk = blocks_.new_walk(workspace_);
        gradients_.begin_backward(last || !rank_.sums_unsharded());
        walk->begin_micro_batch();
        const auto blocks = static_cast<std::uint32_t>(rank_.model().blocks.size());
        parameters_.unshard_for_forward(0);
        for (std::uint32_t b = 0; b < blocks; ++b) blocks_.forward(*walk, b, b + 1 == blocks);
        for (std::uint32_t b = blocks; b-- > 0;) blocks_.backward(*walk, b, b == 0);
        blocks_.post_backward(0);  // the root's inputs carry no gradient: it ends with backward itself
        gradients_.finish_reduction();
        if (last) step();
        builder_.wait_for_all();
    }

    void build_pipeline_step() {
        program_.step.push_back({"step", 1, {}});
        builder_.begin(program_.step.back());
        pipeline_->run(workspace_);
        gradients_.finish_reduction();
        step();
        pipeline_->free_outputs();
        builder_.wait_for_all();
    }

    void step() {
        builder_.wait_for_all();
        step_position_ = builder_.next();
        gradients_.give_to(optimizer_);
        optimizer_.step();
        gradients_.free_after_step();
    }

    Fsdp2Rank rank_;
    StepProgram program_;
    ProgramBuilder builder_;
    TorchOptimizer optimizer_;
    ProcessGroup shard_group_;
    Fsdp2Parameters parameters_;
    Fsdp2Gradients gradients_;
    Fsdp2Blocks blocks_;
    std::unique_ptr<Fsdp2Pipeline> pipeline_;  ///< under pipeline parallelism
    BufferId workspace_ = no_buffer;
    OperationId step_position_ = 0;
};

EngineOutput empty_output(const Scenario& scenario) {
    EngineOutput output{.rule_set = "fsdp2 (PyTorch 2.6)", .layout = {}, .allocator = AllocatorKind::caching};
    if (scenario.training.optimizer == Optimizer::muon) output.constants.push_back(newton_schulz_constant());
    output.constants.push_back(cublas_workspace_constant(scenario.cluster));
    const TrainingConfig& training = scenario.training;
    const bool replicated =
        training.shard_group > 1 && training.shard_group < training.data_parallel * training.context_parallel;
    // One group each for sharding, its replicas, tensor, context and pipeline parallelism.
    output.communicators = 1 + (replicated ? 1U : 0U) + (training.tensor_parallel > 1 ? 1U : 0U) +
                           (training.context_parallel > 1 ? 1U : 0U) +
                           (training.pipeline_parallel > 1 ? 1U : 0U);
    return output;
}

/// Stages hold consecutive ranks; the first of equal shards stands for its stage.
EngineOutput pipelined_fsdp2(const Scenario& whole, const Scenario& rank) {
    EngineOutput output = empty_output(rank);
    const std::uint64_t stages = whole.training.pipeline_parallel, width = whole.world_size() / stages;
    for (std::uint64_t s = 0; s < stages; ++s) {
        TorchStage stage = torch_stage(rank, s);
        const ModelSpec& model = stage.scenario.model;
        const TorchUnits units = torch_units(model, rank.training.fsdp.wrap.value_or("layer"));
        ShardLayout layout = fsdp2_layout(model, units, rank.training.shard_group);
        Fsdp2Program program(stage, s, units);
        output.programs.push_back(program.build());
        output.host.push_back(program.host());
        output.program_ranks.push_back({{s * width, (s + 1) * width - 1}});
        if (s == 0) output.layout = layout;
        output.rank_models.push_back(
            {std::move(stage.scenario.model), std::move(layout), rank.training.sequence_length});
    }
    return output;
}

}  // namespace

EngineOutput fsdp2_engine(const Scenario& whole) {
    check_torch(whole);
    const Scenario scenario = rank_scenario(whole);
    if (whole.training.pipeline_parallel > 1) return pipelined_fsdp2(whole, scenario);
    const std::uint64_t ranks = scenario.training.shard_group;
    const TorchUnits units = torch_units(scenario.model, scenario.training.fsdp.wrap.value_or("layer"));
    EngineOutput output = empty_output(scenario);
    output.layout = fsdp2_layout(scenario.model, units, ranks);
    for (const auto& members : fsdp2_ranks_by_ownership(scenario.model, ranks)) {
        Fsdp2Program program(scenario, units, members.front());
        output.programs.push_back(program.build());
        output.host.push_back(program.host());
        output.program_ranks.push_back(
            fsdp2_world_ranks(members, ranks, scenario.training.tensor_parallel, scenario.world_size()));
    }
    add_rank_models(output, whole, scenario);
    return output;
}

}  // namespace zeroplan
