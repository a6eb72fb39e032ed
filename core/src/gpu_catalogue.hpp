#pragma once
#include <vector>

#include "zeroplan/cluster_spec.hpp"

namespace zeroplan {

/// Every GPU of topologies/gpus, by name; the readers of src/json know their files.
std::vector<GpuSpec> gpu_catalogue();

}  // namespace zeroplan
