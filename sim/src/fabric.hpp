#pragma once
#include <vector>

#include "compat.hpp"
#include "step_graph.hpp"

namespace zeroplan::sim {

/// The links that a step needs, and one virtual route for every collective.
///
/// A flow's route crosses each of its links as often as its weight says, and a private link that lets every
/// flow pass at the algorithm's bandwidth. Latencies are paid outside: in SimGrid they would also be weights
/// of sharing.
class Fabric {
public:
    Fabric(compat::sg::Engine& engine, const StepGraph& graph);

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
