#pragma once
#include "engines/megatron_flights.hpp"
#include "engines/megatron_stage.hpp"
#include "engines/program_builder.hpp"

namespace zeroplan {

/// Runs the micro-batches of a step in the order of the stage's pipeline schedule, beginning in the builder's
/// section. What repeats itself goes into a section of its own.
/// source: megatron/core/pipeline_parallel/schedules.py.
void run_megatron_schedule(const MegatronStage& stage, MegatronFlights& flights, ProgramBuilder& builder);

}  // namespace zeroplan
