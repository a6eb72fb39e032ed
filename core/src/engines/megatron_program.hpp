#pragma once
#include <functional>
#include <optional>
#include <string>

#include "engines/megatron_model.hpp"
#include "engines/megatron_options.hpp"
#include "zeroplan/plan.hpp"

namespace zeroplan {

/// The step of one rank of a pipeline stage, and what stays between steps.
struct StageProgram {
    StepProgram program;
    RankModel rank_model;
    std::vector<Constant> constants;
    std::optional<HostPhases> host{};  ///< nullopt: nothing is offloaded
};

/// source: megatron/core/distributed, megatron/core/optimizer, megatron/core/pipeline_parallel/schedules.py.
StageProgram megatron_stage_program(const Scenario& scenario, const MegatronOptions& options,
                                    std::uint32_t stage);

/// One program a pipeline stage, each of all ranks of its stage; the layout is the first stage's, the
/// constants the last one's.
EngineOutput megatron_output(const Scenario& scenario, std::string rule_set,
                             const std::function<StageProgram(std::uint32_t stage)>& program_of);

}  // namespace zeroplan
