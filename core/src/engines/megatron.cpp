#include "engines/engine.hpp"
#include "engines/megatron_options.hpp"
#include "engines/megatron_program.hpp"

namespace zeroplan {

EngineOutput megatron_engine(const Scenario& scenario) {
    const MegatronOptions options = read_megatron_options(scenario.training);
    const bool old = options.generation == MegatronGeneration::lm_2021;
    EngineOutput output{.rule_set = old ? "megatron-lm 2021" : "megatron-core 0.1x",
                        .allocator = AllocatorKind::caching};
    const auto stages = static_cast<std::uint32_t>(scenario.training.pipeline_parallel);
    const std::uint64_t ranks = scenario.world_size() / stages;
    for (std::uint32_t stage = 0; stage < stages; ++stage) {
        StageProgram program = megatron_stage_program(scenario, options, stage);
        if (stage == 0) output.layout = program.rank_model.layout;
        output.programs.push_back(std::move(program.program));
        output.rank_models.push_back(std::move(program.rank_model));
        output.program_ranks.push_back({{stage * ranks, (stage + 1) * ranks - 1}});
        if (stage + 1 == stages) output.constants = std::move(program.constants);
    }
    return output;
}

}  // namespace zeroplan
