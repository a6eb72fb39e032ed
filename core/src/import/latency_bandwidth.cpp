#include "import/latency_bandwidth.hpp"

#include <algorithm>
#include <cmath>

namespace zeroplan {

std::optional<LatencyBandwidth> fit_latency_bandwidth(std::span<const SizeTime> samples) {
    if (samples.size() < 2) return std::nullopt;
    const SizeTime& first = samples.front();
    const SizeTime &last = samples.back(), &before = samples[samples.size() - 2];
    const double rate = (last.bytes - before.bytes) / (last.seconds - before.seconds);
    if (!(rate > 0) || !std::isfinite(rate)) return std::nullopt;
    LatencyBandwidth fit{std::max(first.seconds - first.bytes / rate, 0.0), rate, 0};
    for (const SizeTime& sample : samples)
        fit.largest_relative_error = std::max(
            fit.largest_relative_error, std::abs((fit.latency_s + sample.bytes / rate) / sample.seconds - 1));
    return fit;
}

}  // namespace zeroplan
