#pragma once
#include <cstdint>
#include <vector>

#include "zeroplan/timed_program.hpp"

namespace zeroplan::sim {

/// The step of every program as one graph: repetitions written out, lanes turned into edges, and each
/// collective one node for all programs, which starts when the last of them is ready.
struct StepGraph {
    struct Node {
        double seconds = 0;  ///< of work; a collective's time is up to the network
        std::uint32_t collective = no_collective;
        std::uint32_t waits_for = 0;  ///< number of predecessors
    };
    std::vector<Node> nodes;
    std::vector<std::uint32_t> first_successor;  ///< nodes.size() + 1 positions in `successors`
    std::vector<std::uint32_t> successors;
    /// By program: the node that each of its runs (section, repetition, node) became.
    std::vector<std::vector<std::uint32_t>> node_of_run;
};

/// Throws Error{not_supported} if the programs don't issue the same collectives in the same order.
StepGraph build_step_graph(const std::vector<TimedProgram>& programs);

}  // namespace zeroplan::sim
