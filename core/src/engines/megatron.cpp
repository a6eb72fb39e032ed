#include "engines/engine.hpp"
#include "engines/megatron_options.hpp"
#include "engines/megatron_program.hpp"

namespace zeroplan {

EngineOutput megatron_engine(const Scenario& scenario) {
    const MegatronOptions options = read_megatron_options(scenario.training);
    const bool old = options.generation == MegatronGeneration::lm_2021;
    return megatron_output(
        scenario, old ? "megatron-lm 2021" : "megatron-core 0.1x",
        [&](std::uint32_t stage) { return megatron_stage_program(scenario, options, stage); });
}

}  // namespace zeroplan
