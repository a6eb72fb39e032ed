#include "step_graph.hpp"

#include <fmt/format.h>

#include <array>
#include <map>

namespace zeroplan::sim {
namespace {

class GraphBuilder {
public:
    StepGraph build(const std::vector<TimedProgram>& programs) {
        pipeline_ = is_pipeline(programs);
        for (const TimedProgram& program : programs) add_program(program, programs.front());
        join_transfers();
        link_successors();
        return std::move(graph_);
    }

private:
    void add_program(const TimedProgram& program, const TimedProgram& first) {
        collectives_seen_.fill(0);
        const auto rank_class = static_cast<std::uint32_t>(graph_.node_of_run.size());
        graph_.node_of_run.emplace_back();
        first_flow_ = pipeline_ ? static_cast<std::uint32_t>(graph_.flows.size()) : 0;
        if (pipeline_ || rank_class == 0)
            for (const TimedCollective& c : program.collectives)
                graph_.flows.push_back({c.cost, pipeline_ ? rank_class : all_classes});
        std::array<std::uint32_t, lane_count> last;
        last.fill(no_node);
        for (const TimedSection& section : program.sections)
            for (std::uint64_t i = 0; i < section.repeat; ++i) add_iteration(section, program, first, last);
        for (std::size_t lane = 0; lane < lane_count && !pipeline_; ++lane)
            if (collectives_seen_[lane] != shared_[lane].size()) refuse();
    }

    void add_iteration(const TimedSection& section, const TimedProgram& program, const TimedProgram& first,
                       std::array<std::uint32_t, lane_count>& last) {
        std::vector<std::uint32_t>& runs = graph_.node_of_run.back();
        const std::size_t base = runs.size();
        const std::uint32_t host_before = last[host_lane];
        for (const TimedNode& node : section.nodes) {
            const std::uint32_t id = add_node(node, program, first);
            if (node.transfer != TransferSide::none)
                (node.transfer == TransferSide::send ? sends_ : receives_)[node.channel].push_back(id);
            add_edge(last[node.lane], id);
            for (const std::uint32_t wait : node.after)
                if (wait != no_node) add_edge(wait == host_at_start ? host_before : runs[base + wait], id);
            last[node.lane] = id;
            runs.push_back(id);
        }
    }

    /// Collectives of later programs are those of the first one, in order on each stream.
    std::uint32_t add_node(const TimedNode& node, const TimedProgram& program, const TimedProgram& first) {
        const auto id = static_cast<std::uint32_t>(graph_.nodes.size());
        if (node.collective == no_collective) {
            graph_.nodes.push_back({node.seconds, no_collective, 0});
            return id;
        }
        if (pipeline_) {
            graph_.nodes.push_back({0, first_flow_ + node.collective, 0});
            return id;
        }
        std::vector<std::uint32_t>& shared = shared_[node.lane];
        const std::size_t number = collectives_seen_[node.lane]++;
        if (graph_.node_of_run.size() == 1) {
            graph_.nodes.push_back({0, node.collective, 0});
            shared.push_back(id);
            return id;
        }
        if (number >= shared.size() || first.collectives[graph_.nodes[shared[number]].collective] !=
                                           program.collectives[node.collective])
            refuse();
        return shared[number];
    }

    [[noreturn]] static void refuse() {
        throw Error(ErrorCode::not_supported, "the rank groups' programs issue different collectives",
                    "simulate a plan whose ranks all take part in the same collectives");
    }

    void join_transfers() {
        for (const auto& [channel, receives] : receives_) {
            const std::vector<std::uint32_t>& sends = sends_[channel];
            if (sends.size() != receives.size())
                throw Error(ErrorCode::run_failed,
                            fmt::format("{} messages are sent on channel {}, but {} received", sends.size(),
                                        channel, receives.size()));
            for (std::size_t i = 0; i < receives.size(); ++i) add_edge(sends[i], receives[i]);
        }
    }

    void add_edge(std::uint32_t from, std::uint32_t to) {
        if (from == no_node || from == to) return;
        edges_.emplace_back(from, to);
        ++graph_.nodes[to].waits_for;
    }

    void link_successors() {
        graph_.first_successor.assign(graph_.nodes.size() + 1, 0);
        for (const auto& [from, to] : edges_) ++graph_.first_successor[from + 1];
        for (std::size_t i = 1; i < graph_.first_successor.size(); ++i)
            graph_.first_successor[i] += graph_.first_successor[i - 1];
        graph_.successors.resize(edges_.size());
        std::vector<std::uint32_t> next = graph_.first_successor;
        for (const auto& [from, to] : edges_) graph_.successors[next[from]++] = to;
    }

    StepGraph graph_;
    bool pipeline_ = false;
    std::uint32_t first_flow_ = 0;                                          ///< of the program that is added
    std::map<std::uint32_t, std::vector<std::uint32_t>> sends_, receives_;  ///< nodes by channel
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;
    std::array<std::vector<std::uint32_t>, lane_count>
        shared_;  ///< collectives of the first program, by lane
    std::array<std::size_t, lane_count> collectives_seen_{};
};

}  // namespace

StepGraph build_step_graph(const std::vector<TimedProgram>& programs) {
    return GraphBuilder().build(programs);
}

}  // namespace zeroplan::sim
