#pragma once
#include "engines/megatron_model.hpp"
#include "engines/megatron_options.hpp"
#include "zeroplan/plan.hpp"

namespace zeroplan {

/// The step of one rank of a pipeline stage, and what stays between steps.
struct StageProgram {
    StepProgram program;
    RankModel rank_model;
    std::vector<Constant> constants;
};

/// source: megatron/core/distributed, megatron/core/optimizer, megatron/core/pipeline_parallel/schedules.py.
StageProgram megatron_stage_program(const Scenario& scenario, const MegatronOptions& options,
                                    std::uint32_t stage);

}  // namespace zeroplan
