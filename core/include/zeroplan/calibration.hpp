#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "zeroplan/collective_kind.hpp"

namespace zeroplan {

/// What nccl-tests measured of one collective: `bytes` is the whole buffer.
struct MeasuredPoint {
    CollectiveKind kind = CollectiveKind::all_reduce;
    std::uint64_t ranks = 1, nodes = 1;
    double bytes = 0, seconds = 0;
    friend bool operator==(const MeasuredPoint&, const MeasuredPoint&) = default;
};

/// What NCCL's graph search found on the machine (NCCL_GRAPH_DUMP_FILE).
struct RingChannels {
    double count = 0, intra_bytes_per_s = 0, inter_bytes_per_s = 0;  ///< rates of one channel
    friend bool operator==(const RingChannels&, const RingChannels&) = default;
};

/// Figures of one cluster's own that replace built-in ones: what `zeroplan import` makes of nccl-tests logs
/// and NCCL's graphs, and named constants.
struct Calibration {
    std::string source;                       ///< file names, for people
    std::map<std::string, double> constants;  ///< by the name that reports give the constant
    std::vector<MeasuredPoint> collectives;   ///< by kind, ranks, nodes, then size
    std::optional<RingChannels> ring;
    bool empty() const { return constants.empty() && collectives.empty() && !ring; }
    friend bool operator==(const Calibration&, const Calibration&) = default;
};

}  // namespace zeroplan
