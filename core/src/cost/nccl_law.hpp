#pragma once
#include <cstdint>

#include "cost/nccl_channels.hpp"
#include "cost/nccl_tables.hpp"
#include "zeroplan/cluster_spec.hpp"
#include "zeroplan/collective_cost.hpp"

namespace zeroplan::nccl {

/// A communicator as NCCL's tuning model sees it, with the latencies and bus bandwidths that the model gives
/// it. source: src/graph/tuning.cc (NCCL 2.30)
class Law {
public:
    Law(const GroupPlacement& placement, const ClusterSpec& cluster);

    const GroupPlacement& placement() const { return placement_; }
    const LinkRates& rates() const { return rates_; }
    bool across_nodes() const { return placement_.nodes > 1; }
    double ranks() const { return static_cast<double>(placement_.ranks); }
    double nodes() const { return static_cast<double>(placement_.nodes); }
    bool has_ll128() const { return ll128_; }
    /// The switch reduces (NVLink SHARP).
    bool has_nvls() const { return nvls_; }

    /// Steps of the ring: the buffer crosses every edge steps / ranks times.
    double ring_steps(CollectiveKind kind) const;
    /// Times that the buffer's first byte crosses the network, one after the other.
    double network_hops(CollectiveKind kind, CollectiveAlgorithm algorithm) const;

    double ring_latency_us(CollectiveKind kind, CollectiveProtocol protocol, double bytes) const;
    double ring_bus_gb(CollectiveProtocol protocol) const;
    double tree_latency_us(CollectiveProtocol protocol) const;
    double tree_bus_gb(CollectiveProtocol protocol, double bytes) const;
    /// Of NVLS, or of NVLSTree across nodes.
    double nvls_latency_us() const;
    double nvls_bus_gb() const;
    /// NCCL builds parallel aggregated trees of nodes with one rank each.
    bool has_pat() const { return placement_.nodes > 1 && placement_.ranks == placement_.nodes; }
    double pat_latency_us() const;
    double pat_algorithm_gb() const;
    /// Of a message, over the network if the communicator has one.
    double message_latency_us() const;

private:
    double net_latency_us(CollectiveAlgorithm algorithm, CollectiveProtocol protocol) const;

    GroupPlacement placement_;
    Generation gpu_;
    Hardware intra_;
    LinkRates rates_;
    bool ll128_, nvls_;
    Channels channels_;
};

}  // namespace zeroplan::nccl
