#include <utility>
#include <vector>

#include "engines/engine.hpp"
#include "engines/megatron_checks.hpp"
#include "engines/megatron_flights.hpp"
#include "engines/megatron_fsdp_gathers.hpp"
#include "engines/megatron_fsdp_reductions.hpp"
#include "engines/megatron_gradients.hpp"
#include "engines/megatron_passes.hpp"
#include "engines/megatron_program.hpp"
#include "engines/megatron_schedule.hpp"
#include "engines/megatron_workspaces.hpp"

namespace zeroplan {
namespace {

/// Mean elements of a transformer layer on the stage.
std::uint64_t average_unit(const ModelSpec& model) {
    std::uint64_t units = 0, elements = 0;
    for (const Block& block : model.blocks) {
        if (!model.block_kinds[block.kind].is_layer) continue;
        ++units;
        for (const std::uint32_t p : block.parameters) elements += model.parameters[p].numel;
    }
    return units == 0 ? 0 : elements / units;
}

/// The step of one rank of a pipeline stage: Megatron's model and schedule, Megatron-FSDP's parameters and
/// gradients. source: megatron/core/distributed/fsdp/src/megatron_fsdp/megatron_fsdp.py.
class MegatronFsdpProgram {
public:
    MegatronFsdpProgram(const Scenario& scenario, const MegatronOptions& options, std::uint32_t number)
        : stage_(scenario, options, number),
          state_(stage_.parts(), megatron_fsdp_plan(scenario, options, average_unit(stage_.model()))),
          builder_(result_.program),
          gradients_(stage_,
                     {[this](std::uint32_t p) { return state_.parameter(p); },
                      [this](std::uint32_t p) { return place_of_gradient(p); }},
                     builder_),
          passes_(stage_, gradients_, builder_, hooks()),
          flights_(stage_, passes_, builder_) {
        for (FsdpChunk& chunk : state_.chunks()) {
            gathers_.emplace_back(state_, chunk, builder_);
            reductions_.emplace_back(state_, chunk, builder_);
        }
        for (Chunk c = 0; c < stage_.chunk_count(); ++c)
            for (std::uint32_t b = stage_.blocks(c).first; b <= stage_.blocks(c).last; ++b)
                chunk_of_block_.push_back(c);
    }

    StageProgram build() {
        result_.program.load = {"load", 1, {}};
        builder_.begin(result_.program.load);
        state_.load(builder_);
        build_init();
        build_step();
        // Checkpoints are written by every rank from its own shards (fsdp_dtensor).
        result_.program.save = {"save", 1, {}};
        result_.rank_model = {stage_.model(), state_.layout(), stage_.training().sequence_length};
        return std::move(result_);
    }

private:
    using Direction = MegatronFsdpGathers::Direction;

    MegatronFsdpGathers& gathers(std::uint32_t block) { return gathers_[chunk_of_block_[block]]; }
    bool recomputes(std::uint32_t block) const {
        return stage_.training().recompute == Recompute::full &&
               stage_.model().block_kinds[stage_.model().blocks[block].kind].is_layer;
    }

    BlockHooks hooks() {
        return {.before_forward =
                    [this](std::uint32_t block) {
                        gathers(block).gather(block, Direction::forward);
                        running_ = block;
                    },
                .after_forward = [this](std::uint32_t block) { gathers(block).release(block); },
                .before_backward = [this](std::uint32_t block) { begin_backward(block); },
                .after_backward =
                    [this](std::uint32_t block, bool last) {
                        reductions_[chunk_of_block_[block]].after_backward(block, last);
                        gathers(block).release(block);
                    },
                .after_chunk_backward = [this](Chunk chunk) { reductions_[chunk].finish(); },
                .before_operator = [this](ComputePhase phase,
                                          std::uint32_t block) { begin_operator(phase, block); },
                .waits = [this] { return take_waits(); }};
    }

    std::vector<OperationId> take_waits() {
        std::vector<OperationId> waits = gathers(running_).take_waits();
        for (MegatronFsdpReductions& reductions : reductions_)
            for (const OperationId reduced : reductions.take_waits()) waits.push_back(reduced);
        return waits;
    }

    /// Only units have a hook before backward. A layer that is recomputed is gathered by its forward's hook,
    /// which looks no further then.
    void begin_backward(std::uint32_t block) {
        running_ = block;
        prefetched_ = false;
        if (block == stage_.blocks(chunk_of_block_[block]).last) gathers(block).begin_backward();
        if (recomputes(block) || !stage_.model().block_kinds[stage_.model().blocks[block].kind].is_layer)
            gathers(block).gather_alone(block);
        else
            gathers(block).gather(block, Direction::backward);
    }

    void begin_operator(ComputePhase phase, std::uint32_t block) {
        if (phase != ComputePhase::backward || prefetched_ || !recomputes(block)) return;
        prefetched_ = true;
        gathers(block).gather(block, Direction::backward);
    }

    BufferId place_of_gradient(std::uint32_t parameter) {
        FsdpBuffers& bucket = state_.bucket_of(parameter);
        return reductions_[chunk_of_block_[running_]].place_of(bucket);
    }

    void build_init() {
        result_.program.init = {"init", 1, {}};
        builder_.begin(result_.program.init);
        result_.constants = allocate_megatron_workspaces(stage_, builder_);
        if (stage_.options().transformer_engine) gradients_.allocate_dummies();
        state_.initialise_optimizer(builder_);
        state_.allocate_main_gradients(builder_);
        for (MegatronFsdpGathers& gathers : gathers_) gathers.allocate_resident();
        for (MegatronFsdpReductions& reductions : reductions_) reductions.allocate_resident();
        flights_.allocate_retained();
    }

    void build_step() {
        result_.program.step.reserve(4);
        builder_.begin_step("micro_batches", 1);
        state_.free_main_gradients(builder_);
        for (MegatronFsdpGathers& gathers : gathers_) gathers.begin_step();
        run_megatron_schedule(stage_, flights_, builder_);
        flights_.end();
        for (MegatronFsdpReductions& reductions : reductions_) reductions.reduce_everything();
        builder_.wait_for_all();
        state_.allocate_main_gradients(builder_);
        state_.reduce_tied_copy(builder_);
        state_.step_optimizer(builder_);
        for (MegatronFsdpGathers& gathers : gathers_) gathers.gather_everything();
        builder_.wait_for_all();
    }

    StageProgram result_;
    MegatronStage stage_;
    MegatronFsdpState state_;
    ProgramBuilder builder_;
    std::vector<MegatronFsdpGathers> gathers_;  ///< by chunk
    std::vector<MegatronFsdpReductions> reductions_;
    MegatronGradients gradients_;
    MegatronPasses passes_;
    MegatronFlights flights_;
    std::vector<Chunk> chunk_of_block_;
    std::uint32_t running_ = 0;  ///< block
    bool prefetched_ = false;
};

}  // namespace

EngineOutput megatron_fsdp_engine(const Scenario& scenario) {
    const MegatronOptions options = read_megatron_options(scenario.training);
    check_megatron(scenario, options);
    const Scenario planned = without_idle_keys(scenario);
    EngineOutput output = megatron_output(
        planned, "megatron-core 0.1x, Megatron-FSDP",
        [&](std::uint32_t stage) { return MegatronFsdpProgram(planned, options, stage).build(); });
    output.warnings = megatron_warnings(scenario, options);
    return output;
}

}  // namespace zeroplan
