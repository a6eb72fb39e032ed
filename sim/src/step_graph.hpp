#pragma once
#include <cstdint>
#include <vector>

#include "links.hpp"
#include "zeroplan/rank_classes.hpp"
#include "zeroplan/timed_program.hpp"

namespace zeroplan::sim {

/// A collective or message and the links that it crosses.
struct GraphFlow {
    CollectiveCost cost;
    std::vector<LinkUse> links;
    /// Of each of its GPUs, as long as it has its links for itself: whatever classes there are, ranks see the
    /// same.
    GpuShares shares;
    std::vector<std::uint32_t> classes;  ///< whose GPUs these are
};

/// A job as its classes of ranks run it: one program a class.
struct GraphJob {
    const std::vector<TimedProgram>& programs;
    const RankClasses& classes;
    LinkRates rates;
};

/// The step of every class of ranks as one graph: repetitions written out and lanes turned into edges.
/// Classes that meet in a communicator share each of its collectives as one node, which starts when the last
/// of them is ready; stages of a pipeline are joined from each send to its receive.
struct StepGraph {
    struct Node {
        WorkTime work;                             ///< alone; a collective's time is up to the network
        std::uint32_t collective = no_collective;  ///< index into flows
        std::uint32_t waits_for = 0;               ///< number of predecessors
        std::uint32_t gpu = no_gpu;  ///< class on whose GPU work runs, which collectives slow down there
    };
    static constexpr std::uint32_t no_gpu = 0xffffffffU;
    std::vector<Node> nodes;
    std::vector<GraphFlow> flows;
    std::vector<double> link_bytes_per_s;        ///< what GraphFlow::links refer to
    std::vector<std::uint32_t> first_successor;  ///< nodes.size() + 1 positions in `successors`
    std::vector<std::uint32_t> successors;
    /// By class: the node that each of its program's runs (section, repetition, node) became.
    std::vector<std::vector<std::uint32_t>> node_of_run;
    std::uint32_t gpus = 0;        ///< classes of ranks of both jobs
    std::uint32_t background = 0;  ///< the first node of the job in the background, whose steps repeat
};

/// Of a job, and of one in the background if there is any, on a fabric of these routes. Throws
/// Error{not_supported} if classes that meet in a communicator don't issue the same collectives in the same
/// order.
StepGraph build_step_graph(const GraphJob& job, const GraphJob* background = nullptr,
                           const FabricRoutes& routes = {});

}  // namespace zeroplan::sim
