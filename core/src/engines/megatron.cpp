#include "engines/engine.hpp"
#include "engines/megatron_checks.hpp"
#include "engines/megatron_program.hpp"

namespace zeroplan {

EngineOutput megatron_engine(const Scenario& scenario) {
    const MegatronOptions options = read_megatron_options(scenario.training);
    check_megatron(scenario, options);
    const Scenario planned = without_idle_keys(scenario);
    const bool old = options.generation == MegatronGeneration::lm_2021;
    EngineOutput output =
        megatron_output(planned, old ? "megatron-lm 2021" : "megatron-core 0.1x",
                        [&](std::uint32_t stage) { return megatron_stage_program(planned, options, stage); });
    output.warnings = megatron_warnings(scenario, options);
    return output;
}

}  // namespace zeroplan
