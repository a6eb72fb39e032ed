#include "engines/megatron_program.hpp"

#include <utility>

#include "engines/megatron_context.hpp"
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
          gradients_(stage_, state_, builder_),
          passes_(stage_, state_, gradients_, builder_),
          flights_(stage_, passes_, builder_) {}

    StageProgram build() {
        build_load();
        build_init();
        build_step();
        // Checkpoints are written by every rank from its own shards.
        result_.program.save = {"save", 1, {}};
        result_.rank_model = {stage_.model(), state_.layout(), stage_.training().sequence_length};
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
        allocate_workspaces();
        if (stage_.options().transformer_engine) gradients_.allocate_dummies();
        state_.initialise_optimizer(builder_);
        state_.allocate_main_gradients(builder_);
        flights_.allocate_retained();
    }

    void allocate_workspaces() {
        const Scenario& scenario = stage_.scenario();
        const MegatronContext context = megatron_context(scenario, stage_.options());
        const bool experts = context.decoder.experts.has_value();
        const bool torch_products = stage_.has_head(stage_.chunk_count() - 1) ||
                                    !stage_.options().transformer_engine ||
                                    context.attention == AttentionKernel::eager || experts;
        MegatronWorkspaces workspaces =
            megatron_workspaces(scenario, stage_.options(), torch_products, experts);
        for (const std::uint64_t bytes : workspaces.bytes) allocate_workspace(DType::uint8, bytes);
        result_.constants = std::move(workspaces.constants);
        if (const std::uint64_t elements = stage_.parts().memory_buffer_elements; elements > 0)
            allocate_workspace(stage_.training().compute_dtype, elements);
        if (context.decoder.position_embedding == "rope")
            allocate_workspace(DType::fp32, scenario.training.sequence_length * context.decoder.head_dim);
    }

    void allocate_workspace(DType dtype, std::uint64_t elements) {
        builder_.allocate({.role = BufferRole::workspace,
                           .category = Category::temporaries,
                           .dtype = dtype,
                           .elements = elements});
    }

    void build_step() {
        result_.program.step.reserve(4);
        builder_.begin_step("micro_batches", 1);
        state_.gather_parameters(builder_);
        // Megatron-LM 2021 cleared the 16-bit gradients only.
        if (stage_.is_core()) state_.free_main_gradients(builder_);
        run_megatron_schedule(stage_, flights_, builder_);
        flights_.end();
        if (!stage_.is_core()) gradients_.reduce_flattened();
        state_.append_step(builder_);
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

}  // namespace zeroplan
