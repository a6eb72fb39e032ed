#include "engines/megatron_program.hpp"

#include <utility>

#include "engines/megatron_flights.hpp"
#include "engines/megatron_gradients.hpp"
#include "engines/megatron_passes.hpp"
#include "engines/megatron_schedule.hpp"
#include "engines/megatron_stage.hpp"
#include "engines/megatron_state.hpp"
#include "engines/megatron_workspaces.hpp"

namespace zeroplan {
namespace {

class StageProgramBuilder {
public:
    StageProgramBuilder(const Scenario& scenario, const MegatronOptions& options, std::uint32_t number)
        : stage_(scenario, options, number),
          state_(stage_.parts(), megatron_state_plan(scenario, options), number == 0),
          builder_(result_.program),
          gradients_(stage_,
                     {[this](std::uint32_t p) { return state_.parameter(p); },
                      [this](std::uint32_t p) { return state_.gradient_buffer(p); }},
                     builder_),
          passes_(stage_, gradients_, builder_,
                  {.after_backward = [this](std::uint32_t block, bool last) { hand_out(block, last); }}),
          flights_(stage_, passes_, builder_) {}

    StageProgram build() {
        build_load();
        build_init();
        build_step();
        // Checkpoints are written by every rank from its own shards.
        result_.program.save = {"save", 1, {}};
        result_.rank_model = {stage_.model(), state_.layout(), stage_.training().sequence_length};
        if (stage_.training().offload_optimizer != OffloadTarget::none)
            result_.host = state_.host(stage_.training());
        return std::move(result_);
    }

private:
    void build_load() {
        result_.program.load = {"load", 1, {}};
        builder_.begin(result_.program.load);
        state_.load(builder_);
    }

    void build_init() {
        result_.program.init = {"init", 1, {}};
        builder_.begin(result_.program.init);
        result_.constants = allocate_megatron_workspaces(stage_, builder_);
        if (stage_.options().transformer_engine) gradients_.allocate_dummies();
        state_.initialise_optimizer(builder_);
        state_.allocate_main_gradients(builder_);
        flights_.allocate_retained();
    }

    void hand_out(std::uint32_t block, bool last) {
        if (!last) return;
        for (const std::uint32_t parameter : stage_.model().blocks[block].parameters)
            state_.gradient_ready(builder_, parameter);
    }

    void build_step() {
        result_.program.step.reserve(4);
        builder_.begin_step("micro_batches", 1);
        state_.gather_parameters(builder_);
        // Megatron-LM 2021 cleared the 16-bit gradients only.
        if (stage_.is_core()) state_.free_main_gradients(builder_);
        run_megatron_schedule(stage_, flights_, builder_);
        flights_.end();
        if (!stage_.is_core()) gradients_.reduce_flattened(state_);
        state_.append_step(builder_, stage_.training());
        if (stage_.is_core()) state_.allocate_main_gradients(builder_);
        builder_.wait_for_all();
    }

    StageProgram result_;
    MegatronStage stage_;
    MegatronState state_;
    ProgramBuilder builder_;
    MegatronGradients gradients_;
    MegatronPasses passes_;
    MegatronFlights flights_;
};

}  // namespace

StageProgram megatron_stage_program(const Scenario& scenario, const MegatronOptions& options,
                                    std::uint32_t stage) {
    return StageProgramBuilder(scenario, options, stage).build();
}

EngineOutput megatron_output(const Scenario& scenario, std::string rule_set,
                             const std::function<StageProgram(std::uint32_t stage)>& program_of) {
    EngineOutput output{.rule_set = std::move(rule_set), .allocator = AllocatorKind::caching};
    const auto stages = static_cast<std::uint32_t>(scenario.training.pipeline_parallel);
    const std::uint64_t ranks = scenario.world_size() / stages;
    for (std::uint32_t stage = 0; stage < stages; ++stage) {
        StageProgram program = program_of(stage);
        if (stage == 0) output.layout = program.rank_model.layout;
        output.programs.push_back(std::move(program.program));
        output.rank_models.push_back(std::move(program.rank_model));
        if (program.host) output.host.push_back(*program.host);
        output.program_ranks.push_back({{stage * ranks, (stage + 1) * ranks - 1}});
        if (stage + 1 == stages) output.constants = std::move(program.constants);
    }
    return output;
}

}  // namespace zeroplan
