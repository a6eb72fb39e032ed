#pragma once
#include <vector>

#include "compat.hpp"
#include "step_graph.hpp"
#include "zeroplan/collective_cost.hpp"
#include "zeroplan/timed_program.hpp"

namespace zeroplan::sim {

/// The links that a step needs, and one virtual route for every collective.
///
/// Links crossed by the same flows with the same weights form a class, of which only one member can bind when
/// shares are max-min fair: of a rank group that is one GPU's link and one NIC. A flow's route crosses each
/// as often as its weight says, and a private link that lets every flow pass at the algorithm's bandwidth.
/// Latencies are paid outside: in SimGrid they would also be weights of sharing.
class Fabric {
public:
    /// A flow crosses the links of its rank class, or of all `rank_classes` of them.
    Fabric(compat::sg::Engine& engine, const std::vector<GraphFlow>& flows, const LinkRates& rates,
           std::size_t rank_classes);

    bool has_flow(std::uint32_t index) const { return flows_[index].payload > 0; }
    /// The flow of collective `index`; it runs once it has been launched.
    compat::sg::CommPtr create_flow(std::uint32_t index) const;
    void launch(compat::sg::Comm& comm, std::uint32_t index) const;

private:
    struct Flow {
        compat::sg::Host* from = nullptr;
        compat::sg::Host* to = nullptr;
        std::uint64_t payload = 0;
    };
    std::vector<Flow> flows_;
};

}  // namespace zeroplan::sim
