#pragma once
#include "zeroplan/collective_cost.hpp"

namespace zeroplan {

/// `cost` with the time that the cluster's calibration measured of such a collective, if it has any: of a
/// communicator of as many ranks and nodes, between its points in a straight line of logarithms; below the
/// smallest message its time, above the largest its bandwidth. For other communicators the law's time is
/// corrected by the ratio that measurement and law have for the most similar one measured, inside a node or
/// between nodes alike; one inside a node says nothing of others.
CollectiveCost as_measured(const CollectiveCost& cost, CollectiveKind kind, const GroupPlacement& placement,
                           const ClusterSpec& cluster);

}  // namespace zeroplan
