#include "step_graph.hpp"

#include <fmt/format.h>

#include <array>
#include <map>

#include "crossings.hpp"
#include "fabric_links.hpp"

namespace zeroplan::sim {
namespace {

using Edges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

/// Adds the nodes, flows and edges of one job.
class JobBuilder {
public:
    JobBuilder(const GraphJob& job, StepGraph& graph, Edges& edges, const FabricRoutes& routes,
               FabricLinkTable& fabric_links)
        : programs_(job.programs),
          classes_(job.classes),
          links_(job.classes, job.rates, graph.link_bytes_per_s),
          graph_(graph),
          edges_(edges),
          crossings_(job.classes, routes),
          fabric_links_(fabric_links),
          first_gpu_(graph.gpus),
          shared_(job.classes.communicators.size()) {
        graph.gpus += static_cast<std::uint32_t>(job.programs.size());
    }

    void add() {
        for (std::uint32_t c = 0; c < programs_.size(); ++c) add_class(c);
        join_transfers();
    }

private:
    /// The collectives of a communicator, in order on each stream.
    using ByLane = std::array<std::vector<std::uint32_t>, lane_count>;

    void add_class(std::uint32_t number) {
        const TimedProgram& program = programs_[number];
        class_ = number;
        flow_of_.clear();
        seen_.clear();
        graph_.node_of_run.emplace_back();
        std::array<std::uint32_t, lane_count> last;
        last.fill(no_node);
        for (const TimedSection& section : program.sections)
            for (std::uint64_t i = 0; i < section.repeat; ++i) add_iteration(section, last);
        for (const std::uint32_t communicator : classes_.classes[number].communicator)
            for (std::size_t lane = 0; lane < lane_count; ++lane)
                if (seen_[{communicator, lane}] != shared_[communicator][lane].size()) refuse();
    }

    void add_iteration(const TimedSection& section, std::array<std::uint32_t, lane_count>& last) {
        std::vector<std::uint32_t>& runs = graph_.node_of_run.back();
        const std::size_t base = runs.size();
        const std::uint32_t host_before = last[host_lane];
        for (const TimedNode& node : section.nodes) {
            const std::uint32_t id = add_node(node);
            if (node.transfer != TransferSide::none)
                (node.transfer == TransferSide::send ? sends_ : receives_)[{node.channel, class_}].push_back(
                    id);
            add_edge(last[node.lane], id);
            for (const std::uint32_t wait : node.after)
                if (wait != no_node) add_edge(wait == host_at_start ? host_before : runs[base + wait], id);
            last[node.lane] = id;
            runs.push_back(id);
        }
    }

    std::uint32_t add_node(const TimedNode& node) {
        const auto id = static_cast<std::uint32_t>(graph_.nodes.size());
        if (node.collective == no_collective) {
            graph_.nodes.push_back(
                {.work = node.work(),
                 .gpu = is_device_lane(node.lane) ? first_gpu_ + class_ : StepGraph::no_gpu});
            return id;
        }
        const TimedCollective& collective = programs_[class_].collectives[node.collective];
        if (node.transfer == TransferSide::send) {
            const auto [number, is_new] = flow(node.collective, collective.cost, {class_});
            if (is_new) cross(number, crossings_.of_message(class_, node.channel), collective.cost);
            graph_.nodes.push_back({.work = {}, .collective = number});
            return id;
        }
        return add_collective(node, collective, id);
    }

    /// The first of a communicator's classes brings its collectives, the others join them.
    std::uint32_t add_collective(const TimedNode& node, const TimedCollective& collective, std::uint32_t id) {
        const std::uint32_t number =
            classes_.classes[class_].communicator[static_cast<std::size_t>(collective.group)];
        const ClassCommunicator& communicator = classes_.communicators[number];
        std::vector<std::uint32_t>& shared = shared_[number][node.lane];
        const std::size_t position = seen_[{number, node.lane}]++;
        if (communicator.classes.front() == class_) {
            const auto [flow_number, is_new] = flow(node.collective, collective.cost, communicator.classes);
            if (is_new) cross(flow_number, crossings_.of_collective(number, collective), collective.cost);
            graph_.nodes.push_back({.work = {}, .collective = flow_number});
            shared.push_back(id);
            return id;
        }
        if (position >= shared.size() ||
            graph_.flows[graph_.nodes[shared[position]].collective].cost != collective.cost)
            refuse();
        return shared[position];
    }

    /// The flow of a collective of this class' program, and whether it is new.
    std::pair<std::uint32_t, bool> flow(std::uint32_t collective, const CollectiveCost& cost,
                                        const std::vector<std::uint32_t>& rank_classes) {
        const auto next = static_cast<std::uint32_t>(graph_.flows.size());
        const auto [place, is_new] = flow_of_.try_emplace(collective, next);
        if (is_new) {
            GraphFlow& added = graph_.flows.emplace_back();
            added.cost = cost;
            added.shares = shares_of(cost, cost.seconds(), programs_[class_].gpu);
            for (const std::uint32_t c : rank_classes) {
                links_.add_uses(added.links, cost, c);
                added.classes.push_back(first_gpu_ + c);
            }
        }
        return {place->second, is_new};
    }

    void cross(std::uint32_t flow, std::uint32_t crossing, const CollectiveCost& cost) {
        while (links_of_crossing_.size() < crossings_.size())
            links_of_crossing_.push_back(
                fabric_links_.add(crossings_[static_cast<std::uint32_t>(links_of_crossing_.size())]));
        fabric_links_.add_flow(flow, links_of_crossing_[crossing], cost.nic_weight);
    }

    [[noreturn]] static void refuse() {
        throw Error(ErrorCode::not_supported, "the rank groups' programs issue different collectives",
                    "simulate a plan whose ranks all take part in the same collectives");
    }

    /// Activations come from the stage before, gradients from the one behind.
    void join_transfers() {
        for (const auto& [at, receives] : receives_) {
            const auto& [channel, receiver] = at;
            const AlikeRanks& own = classes_.classes[receiver];
            const std::uint32_t sender = channel % 2 == 0 ? own.previous_stage : own.next_stage;
            const std::vector<std::uint32_t>& sends = sends_[{channel, sender}];
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

    const std::vector<TimedProgram>& programs_;
    const RankClasses& classes_;
    LinkTable links_;
    StepGraph& graph_;
    Edges& edges_;
    Crossings crossings_;
    FabricLinkTable& fabric_links_;
    std::uint32_t first_gpu_;
    std::vector<std::uint32_t> links_of_crossing_;                       ///< their numbers in the table
    std::uint32_t class_ = 0;                                            ///< that is added
    std::map<std::uint32_t, std::uint32_t> flow_of_;                     ///< of its program's collectives
    std::map<std::pair<std::uint32_t, std::size_t>, std::size_t> seen_;  ///< by communicator and lane
    std::vector<ByLane> shared_;                                         ///< nodes by communicator
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> sends_,
        receives_;  ///< nodes by channel and class
};

void link_successors(StepGraph& graph, const Edges& edges) {
    graph.first_successor.assign(graph.nodes.size() + 1, 0);
    for (const auto& [from, to] : edges) ++graph.first_successor[from + 1];
    for (std::size_t i = 1; i < graph.first_successor.size(); ++i)
        graph.first_successor[i] += graph.first_successor[i - 1];
    graph.successors.resize(edges.size());
    std::vector<std::uint32_t> next = graph.first_successor;
    for (const auto& [from, to] : edges) graph.successors[next[from]++] = to;
}

}  // namespace

StepGraph build_step_graph(const GraphJob& job, const GraphJob* background, const FabricRoutes& routes) {
    StepGraph graph;
    Edges edges;
    FabricLinkTable fabric_links(routes);
    JobBuilder(job, graph, edges, routes, fabric_links).add();
    graph.background = static_cast<std::uint32_t>(graph.nodes.size());
    const std::size_t classes = graph.node_of_run.size();
    if (background != nullptr) JobBuilder(*background, graph, edges, routes, fabric_links).add();
    graph.node_of_run.resize(classes);  // nobody asks for the times of the other job
    fabric_links.finish(graph.link_bytes_per_s, [&graph](std::uint32_t flow, LinkUse use) {
        graph.flows[flow].links.push_back(use);
    });
    link_successors(graph, edges);
    return graph;
}

}  // namespace zeroplan::sim
