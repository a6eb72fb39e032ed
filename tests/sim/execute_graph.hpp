#pragma once
#include <memory>
#include <new>
#include <vector>

#include "child_process.hpp"
#include "executor.hpp"

namespace zeroplan::test {

struct Executed {
    std::vector<NodeTime> times;  ///< by node
    std::uint64_t background_steps = 0;
    double background_s = 0;
};

/// Executes a graph on SimGrid, in a child process as the library does.
inline Executed execute(const sim::StepGraph& graph) {
    const sim::SharedMemory memory(graph.nodes.size() * sizeof(NodeTime)), state(sizeof(sim::Execution));
    auto* execution = new (state.data()) sim::Execution;
    auto* times = static_cast<NodeTime*>(memory.data());
    std::uninitialized_default_construct_n(times, graph.nodes.size());
    sim::run_in_child([&] { sim::execute_on_simgrid(graph, times, *execution); }, {});
    return {{times, times + graph.nodes.size()}, execution->background_steps, execution->background_s};
}

}  // namespace zeroplan::test
