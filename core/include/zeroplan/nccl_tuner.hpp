#pragma once
#include <string>

#include "zeroplan/plan.hpp"

namespace zeroplan {

/// The fastest algorithm and protocol for every size of the step's collectives, on each of its communicators,
/// as NCCL's example tuner plug-in reads it (NCCL_TUNER_PLUGIN, NCCL_TUNER_CONFIG_FILE): one line a range of
/// bytes, collective,min,max,algorithm,protocol,channels,nNodes,nRanks. By the cost model, with the constants
/// and channels of a calibration. Channels are left to NCCL (-1). Not by what a calibration measured of
/// collectives: nccl-tests times what NCCL chose and doesn't say what that was, nor what else would take.
/// source: NVIDIA/nccl ext-tuner/example (README.md, plugin.c)
std::string nccl_tuner_csv(const Plan& plan);
/// What there is to know of that table: that it has no rows, that measured points are not in it.
std::vector<Warning> nccl_tuner_warnings(const Plan& plan);

}  // namespace zeroplan
