#pragma once
#include "json/object_reader.hpp"
#include "zeroplan/topology_sources.hpp"

namespace zeroplan {

/// "nvlink_mesh" of a topology file, pairs as [GPU, GPU, NVLinks]; none without that key. Throws
/// Error{invalid_input} for a pair that isn't one of two GPUs of the node, in order, or stands twice.
std::vector<MeshLinks> read_nvlink_mesh(const ObjectReader& topology, const ClusterSpec& cluster);

}  // namespace zeroplan
