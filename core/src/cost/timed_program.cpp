#include "zeroplan/timed_program.hpp"

#include <algorithm>

#include "cost/check_time.hpp"
#include "cost/step_costs.hpp"

namespace zeroplan {
namespace {

/// For each lane, how far it is known to have come: 1 + the last operation ended on a stream; on the host
/// lane, 1 + the number of host nodes passed. 0: nothing is known, not even that the section has begun.
using Progress = std::array<std::uint32_t, lane_count>;

void merge(Progress& into, const Progress& other) {
    for (std::size_t lane = 0; lane < lane_count; ++lane) into[lane] = std::max(into[lane], other[lane]);
}

/// An operation on a lane with what it really has to wait for.
struct Entry {
    std::size_t lane = 0;
    OperationId operation = 0;
    double seconds = 0;
    std::uint32_t collective = no_collective;
    Progress after{};  ///< 0 where there is nothing to wait for
    TransferSide transfer = TransferSide::none;
    std::uint32_t channel = no_channel;
};

/// Turns a section into nodes. Waits that are met anyway, because something waited for earlier implies them,
/// are dropped: that keeps nodes few, and what is dropped can never bind.
class SectionLowering {
public:
    SectionLowering(const Section& section, StepCosts& costs) : section_(section), costs_(costs) {}

    TimedSection lower() {
        known_at_end_.resize(section_.operations.size());
        awaited_.resize(section_.operations.size(), false);
        for (OperationId id = 0; id < section_.operations.size(); ++id)
            std::visit([&](const auto& body) { add(id, body); }, section_.operations[id].body);
        return to_nodes();
    }

private:
    void add(OperationId, const Allocate&) {}
    void add(OperationId id, const Free&) { add_host(id, 0); }
    void add(OperationId id, const Wait&) { add_host(id, 0); }
    void add(OperationId id, const LoadBatch& load) { add_host(id, costs_.seconds(load)); }
    void add(OperationId id, const Compute& body) { add_on_stream(id, costs_.seconds(body), no_collective); }
    void add(OperationId id, const OptimizerStep& body) {
        add_on_stream(id, costs_.seconds(body), no_collective);
    }
    void add(OperationId id, const Accumulate& body) {
        add_on_stream(id, costs_.seconds(body), no_collective);
    }
    void add(OperationId id, const HostCopy& body) { add_on_stream(id, costs_.seconds(body), no_collective); }
    void add(OperationId id, const HostStep& body) { add_on_stream(id, costs_.seconds(body), no_collective); }
    void add(OperationId id, const Collective& body) {
        const std::uint32_t index = costs_.collective(body);
        add_on_stream(id, costs_.collective_cost(index).seconds(), index);
    }

    void add(OperationId id, const Transfer& body) {
        if (body.send) {
            const std::uint32_t index = costs_.message(body);
            add_on_stream(id, costs_.collective_cost(index).seconds(), index);
        } else {
            add_on_stream(id, 0, no_collective);
        }
        entries_.back().transfer = body.send ? TransferSide::send : TransferSide::receive;
        entries_.back().channel = body.channel;
    }

    std::size_t lane_of(OperationId id) const {
        return static_cast<std::size_t>(section_.operations[id].stream);
    }
    bool takes_stream(OperationId id) const { return known_at_end_[id][lane_of(id)] == id + 1; }

    /// What `id` waits for beyond `known`, which takes up what is known once those have ended.
    Progress new_waits(OperationId id, Progress& known) {
        Progress result{};
        for (const OperationId wait : section_.operations[id].waits) {
            if (!takes_stream(wait)) continue;  // issued by the host before: nothing to wait for
            const std::size_t lane = lane_of(wait);
            if (wait + 1 > known[lane]) result[lane] = std::max(result[lane], wait + 1);
        }
        for (std::size_t lane = 0; lane < stream_count; ++lane) {
            if (result[lane] == 0) continue;
            merge(known, known_at_end_[result[lane] - 1]);
            awaited_[result[lane] - 1] = true;
        }
        return result;
    }

    void add_host(OperationId id, double seconds) {
        Progress& host = known_[host_lane];
        const Progress waits = new_waits(id, host);
        if (seconds == 0 && waits == Progress{}) return;
        ++host_nodes_;
        host[host_lane] = host_nodes_ + 1;
        entries_.push_back({.lane = host_lane, .operation = id, .seconds = seconds, .after = waits});
    }

    void add_on_stream(OperationId id, double seconds, std::uint32_t collective) {
        const std::size_t lane = lane_of(id);
        Progress known = known_[lane];
        const bool follows_host = host_nodes_ + 1 > known[host_lane];
        merge(known, known_[host_lane]);
        known[host_lane] = host_nodes_ + 1;
        Progress waits = new_waits(id, known);
        if (follows_host) waits[host_lane] = host_nodes_ + 1;
        known[lane] = id + 1;
        known_[lane] = known_at_end_[id] = known;
        entries_.push_back(
            {.lane = lane, .operation = id, .seconds = seconds, .collective = collective, .after = waits});
    }

    TimedSection to_nodes() {
        TimedSection result{.repeat = section_.repeat, .nodes = {}, .items = {}};
        std::array<const Entry*, lane_count> last{};
        std::array<std::uint32_t, lane_count> last_node{};
        std::vector<std::uint32_t> node_of(section_.operations.size(), no_node), host_nodes;
        for (const Entry& entry : entries_) {
            const Entry* before = last[entry.lane];
            const bool joins = entry.lane != host_lane && before != nullptr && entry.after == Progress{} &&
                               entry.collective == no_collective && before->collective == no_collective &&
                               entry.transfer == TransferSide::none && !awaited_[before->operation];
            if (!joins) {
                last_node[entry.lane] = static_cast<std::uint32_t>(result.nodes.size());
                result.nodes.push_back(make_node(entry, node_of, host_nodes));
                if (entry.lane == host_lane) host_nodes.push_back(last_node[entry.lane]);
            }
            last[entry.lane] = &entry;
            node_of[entry.operation] = last_node[entry.lane];
            TimedNode& node = result.nodes[last_node[entry.lane]];
            if (entry.lane != host_lane)
                result.items.push_back(
                    {entry.operation, last_node[entry.lane], node.seconds, node.seconds + entry.seconds});
            node.seconds += entry.seconds;
        }
        return result;
    }

    static TimedNode make_node(const Entry& entry, const std::vector<std::uint32_t>& node_of,
                               const std::vector<std::uint32_t>& host_nodes) {
        TimedNode node{.lane = static_cast<std::uint8_t>(entry.lane),
                       .collective = entry.collective,
                       .transfer = entry.transfer,
                       .channel = entry.channel};
        for (std::size_t lane = 0; lane < stream_count; ++lane)
            if (entry.after[lane] > 0) node.after[lane] = node_of[entry.after[lane] - 1];
        const std::uint32_t host = entry.after[host_lane];
        if (host > 0) node.after[host_lane] = host == 1 ? host_at_start : host_nodes[host - 2];
        return node;
    }

    const Section& section_;
    StepCosts& costs_;
    std::array<Progress, lane_count> known_{};  ///< what is known when the lane's next operation may start
    std::vector<Progress> known_at_end_;        ///< by operation, once it has ended
    std::vector<bool> awaited_;                 ///< another lane waits for the operation
    std::uint32_t host_nodes_ = 0;
    std::vector<Entry> entries_;
};

}  // namespace

TimedProgram time_program(const Plan& plan, std::uint32_t program, const WorkScale& scale) {
    check_time_is_modelled(plan.scenario.training);
    const StepProgram& steps = plan.programs[program];
    StepCosts costs(plan, program, scale);
    TimedProgram result;
    for (const Section& section : steps.step)
        result.sections.push_back(SectionLowering(section, costs).lower());
    result.collectives = costs.take_collectives();
    return result;
}

}  // namespace zeroplan
