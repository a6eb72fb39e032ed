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
    /// The switch of a node reduces (NVLink SHARP); between nodes trees join them, or switches that reduce.
    /// By NCCL's law one head alone has no bandwidth.
    bool has_nvls() const { return nvls_ && (!across_nodes() || heads() > 1); }
    /// Switches between the communicator's nodes reduce (SHARP).
    bool network_reduces() const { return sharp_ && placement_.nodes >= collnet_least_nodes; }
    bool has_collnet_chain() const {
        return network_reduces() && placement_.ranks_per_node <= collnet_max_ranks;
    }
    bool has_collnet_direct() const { return has_collnet_chain() && nvswitch_; }
    /// Of a node, that the communicator has by its share of the GPUs.
    std::uint64_t nics() const { return nics_.count; }
    double nic_gb() const { return nics_.gb_per_s; }
    /// Thread blocks of a kernel: of rings, trees and CollNet, of NVLS, of one message, and of messages to
    /// all.
    double kernel_channels() const;
    double nvls_channels() const;
    double message_channels() const;
    double all_to_all_channels() const;
    /// GPUs of a node that talk to the switches, each over a NIC of its own.
    std::uint64_t heads() const;
    /// What switches gather and scatter goes from each GPU to its own NIC: all of them have to be heads.
    bool all_are_heads() const { return heads() >= placement_.ranks_per_node; }

    /// Steps of the ring: the buffer crosses every edge steps / ranks times.
    double ring_steps(CollectiveKind kind) const;
    /// Times that the buffer's first byte crosses the network, one after the other.
    double network_hops(CollectiveKind kind, CollectiveAlgorithm algorithm) const;

    double ring_latency_us(CollectiveKind kind, CollectiveProtocol protocol, double bytes) const;
    double ring_bus_gb(CollectiveProtocol protocol) const;
    double tree_latency_us(CollectiveProtocol protocol) const;
    double tree_bus_gb(CollectiveProtocol protocol, double bytes) const;
    /// Of NVLS, or of NVLSTree.
    double nvls_latency_us(CollectiveAlgorithm algorithm) const;
    double nvls_bus_gb(CollectiveKind kind, CollectiveAlgorithm algorithm) const;
    /// Of CollNetDirect or CollNetChain. The bandwidths are the algorithm's, of the buffer's bytes.
    double collnet_latency_us(CollectiveAlgorithm algorithm) const;
    double collnet_direct_algorithm_gb(CollectiveKind kind) const;
    double collnet_chain_algorithm_gb() const;
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
    bool nvswitch_, ll128_, nvls_, sharp_;
    Nics nics_;
    Channels channels_;
    double logged_channels_;
};

}  // namespace zeroplan::nccl
