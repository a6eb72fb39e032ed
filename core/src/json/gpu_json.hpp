#pragma once
#include <nlohmann/json_fwd.hpp>

#include "zeroplan/cluster_spec.hpp"
#include "zeroplan/error.hpp"

namespace zeroplan {

/// A GPU: the name of one of topologies/gpus, or an object of its figures with the keys of those files. A
/// figure is a number, null (the GPU lacks it) or {"value": n, "source": "…", "recalled": bool}. Throws
/// Error{not_found} for a name that is not in the catalogue, naming the nearest one.
GpuSpec read_gpu(const nlohmann::json& gpu, const ErrorPlace& place);

/// The inverse: the name if the GPU is the catalogue's, else the object.
nlohmann::json gpu_json(const GpuSpec& gpu);

}  // namespace zeroplan
