#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeroplan/fabric_spec.hpp"

namespace zeroplan {

/// A rank whose GPU computes slower than it should.
struct Straggler {
    std::uint64_t rank = 0;
    double factor = 1;  ///< of its speed, above 0 and at most 1
    friend bool operator==(const Straggler&, const Straggler&) = default;
};

enum class SlowLinkKind : std::uint8_t {
    nic,  ///< the NIC of a rank
    gpu,  ///< a rank's link to the GPUs of its node: NVLink, xGMI, PCIe
    node  ///< the NICs of all ranks of a node
};

/// A link at a fraction of its bandwidth, both ways.
struct SlowLink {
    SlowLinkKind kind = SlowLinkKind::nic;
    std::uint64_t index = 0;  ///< rank, or node
    double factor = 1;        ///< of its bandwidth, above 0 and at most 1
    friend bool operator==(const SlowLink&, const SlowLink&) = default;
};
/// "nic:5", as flags and scenarios name it.
std::string to_string(const SlowLink& link);

/// For people: "rank 5 computes at 0.8 of its speed", "the NIC of rank 5 at 0.5 of its bandwidth".
std::string describe(const Straggler& straggler);
std::string describe(const SlowLink& link);

/// Switches that join `nodes` nodes each; what leaves them has the bandwidth of their NICs /
/// oversubscription.
struct LeafSwitches {
    std::uint64_t nodes = 1;
    double oversubscription = 1;
    friend bool operator==(const LeafSwitches&, const LeafSwitches&) = default;
};

enum class PlacementKind : std::uint8_t {
    packed,  ///< leaf after leaf
    spread,  ///< a node of each leaf in turn
    list     ///< the nodes named
};

/// Which nodes of the fabric a job's nodes are, in order.
struct Placement {
    PlacementKind kind = PlacementKind::packed;
    std::vector<std::uint64_t> nodes;  ///< of a list
    friend bool operator==(const Placement&, const Placement&) = default;
};

/// A second job on the same fabric, on nodes that this one leaves free.
struct BackgroundJob {
    std::string name;                    ///< of its model, or its file
    std::string scenario_json;           ///< resolved
    std::optional<Placement> placement;  ///< none: as this job's
    friend bool operator==(const BackgroundJob&, const BackgroundJob&) = default;
};

/// How often what fails in a long run, and what that costs; a mean time between failures of 0 means never.
struct Failures {
    double gpu_mtbf_s = 0, node_mtbf_s = 0;
    double checkpoint_bytes_per_s = 0;       ///< to storage, all ranks together
    std::optional<double> checkpoint_bytes;  ///< none: the plan's
    std::optional<double>
        checkpoint_interval_s;  ///< between the starts of steps after checkpoints; none: the best
    double restart_s = 0;       ///< from a failure to the first step, loading included
    friend bool operator==(const Failures&, const Failures&) = default;
};

/// `what_if` of a scenario file: what is different from a cluster where all is well. The plan is the same;
/// its step is simulated with it, too.
struct WhatIf {
    std::vector<Straggler> stragglers;
    std::vector<SlowLink> slow_links;
    std::optional<LeafSwitches> leaf_switches;  ///< a fat tree of two levels, in short
    std::optional<FabricSpec> fabric;           ///< instead of leaf_switches; neither: non-blocking
    Placement placement;
    std::optional<BackgroundJob> background;
    std::optional<Failures> failures;
    bool empty() const { return *this == WhatIf{}; }
    friend bool operator==(const WhatIf&, const WhatIf&) = default;
};

}  // namespace zeroplan
