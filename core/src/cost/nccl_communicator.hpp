#pragma once
#include <cstdint>
#include <vector>

#include "cost/nccl_law.hpp"
#include "zeroplan/collective_cost.hpp"

namespace zeroplan::cost {
struct Constants;
}

namespace zeroplan::nccl {

/// What collectives of one communicator cost: NCCL's law, the loads on the links, and what measurements show
/// beyond the law.
class Communicator {
public:
    Communicator(const GroupPlacement& placement, const ClusterSpec& cluster);

    /// As NCCL chooses among what `choice` leaves. Throws Error{not_supported} if it leaves nothing.
    CollectiveCost cheapest(CollectiveKind kind, double bytes, const CollectiveChoice& choice) const;
    /// True if `choice` leaves something.
    bool has(CollectiveKind kind, const CollectiveChoice& choice) const;
    /// From one rank to another.
    CollectiveCost message(double bytes) const;

private:
    std::vector<CollectiveCost> candidates(CollectiveKind kind, double bytes) const;
    /// What switches do, of a node or of the network.
    void add_switched(std::vector<CollectiveCost>& entries, CollectiveKind kind, double bytes) const;
    CollectiveCost all_to_all(double bytes) const;
    CollectiveCost ring(CollectiveKind kind, CollectiveProtocol protocol, double bytes) const;
    CollectiveCost tree(CollectiveProtocol protocol, double bytes) const;
    CollectiveCost nvls(CollectiveKind kind, double bytes) const;
    CollectiveCost nvls_tree(double bytes) const;
    CollectiveCost pat(CollectiveKind kind, double bytes) const;
    CollectiveCost collnet_direct(CollectiveKind kind, double bytes) const;
    CollectiveCost collnet_chain(double bytes) const;
    CollectiveCost collnet_entry(CollectiveAlgorithm algorithm, double bytes, double algorithm_gb) const;
    void set_star_load(CollectiveCost& cost, CollectiveKind kind, std::uint64_t local_units) const;
    double overhead_s(CollectiveKind kind, const CollectiveCost& cost) const;
    /// What it takes of each GPU: thread blocks, and accesses of memory.
    void set_occupancy(CollectiveCost& cost, CollectiveKind kind) const;
    double thread_blocks(CollectiveAlgorithm algorithm, CollectiveKind kind) const;
    double memory_accesses(CollectiveAlgorithm algorithm, CollectiveKind kind) const;
    /// A link's load as whole multiples of one unit: `nic` and `intra` in units of bytes / (rails · ranks a
    /// node).
    void set_load(CollectiveCost& cost, double bytes, std::uint64_t nic, std::uint64_t intra) const;

    Law law_;
    const cost::Constants* constants_;
    double slow_hop_s_;
};

}  // namespace zeroplan::nccl
