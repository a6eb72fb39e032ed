#pragma once
#include <cstdint>
#include <vector>

#include "zeroplan/timed_program.hpp"

namespace zeroplan::sim {

inline constexpr std::uint32_t all_classes = 0xffffffffU;

/// A collective or message and the ranks whose links it uses: those of one program, or of all.
struct GraphFlow {
    CollectiveCost cost;
    std::uint32_t rank_class = all_classes;
};

/// The step of every program as one graph: repetitions written out and lanes turned into edges. Programs of
/// ranks in the same groups share each collective as one node, which starts when the last of them is ready;
/// stages of a pipeline have collectives of their own and are joined from each send to its receive.
struct StepGraph {
    struct Node {
        double seconds = 0;                        ///< of work; a collective's time is up to the network
        std::uint32_t collective = no_collective;  ///< index into flows
        std::uint32_t waits_for = 0;               ///< number of predecessors
    };
    std::vector<Node> nodes;
    std::vector<GraphFlow> flows;
    std::vector<std::uint32_t> first_successor;  ///< nodes.size() + 1 positions in `successors`
    std::vector<std::uint32_t> successors;
    /// By program: the node that each of its runs (section, repetition, node) became.
    std::vector<std::vector<std::uint32_t>> node_of_run;
};

/// Throws Error{not_supported} if the programs don't issue the same collectives in the same order.
StepGraph build_step_graph(const std::vector<TimedProgram>& programs);

}  // namespace zeroplan::sim
