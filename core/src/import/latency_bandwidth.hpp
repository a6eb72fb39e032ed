#pragma once
#include <optional>
#include <span>

namespace zeroplan {

struct SizeTime {
    double bytes = 0, seconds = 0;
};

/// time = latency + bytes / bandwidth.
struct LatencyBandwidth {
    double latency_s = 0, bytes_per_s = 0;
    double largest_relative_error = 0;  ///< of the line at a sample
};

/// Of samples in order of size: the bandwidth that the two largest differ by, which no start-up dilutes, and
/// the latency that it leaves of the smallest. What lies between ramps up more slowly than the line: the
/// largest error says by how much. Nothing for fewer than two sizes, or if time doesn't grow with size.
std::optional<LatencyBandwidth> fit_latency_bandwidth(std::span<const SizeTime> samples);

}  // namespace zeroplan
