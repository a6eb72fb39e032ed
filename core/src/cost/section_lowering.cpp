#include "cost/section_lowering.hpp"

#include <algorithm>
#include <array>

namespace zeroplan {
namespace {

/// For each lane, how far it is known to have come: 1 + the last operation ended on a stream; on the host
/// lane, 1 + the number of host nodes passed. 0: nothing is known, not even that the section has begun.
using Progress = std::array<std::uint32_t, lane_count>;

void merge(Progress& into, const Progress& other) {
    for (std::size_t lane = 0; lane < lane_count; ++lane) into[lane] = std::max(into[lane], other[lane]);
}

constexpr std::uint32_t none = 0xffffffffU;

/// An operation on a lane with what it really has to wait for.
struct Entry {
    std::size_t lane = 0;
    OperationId operation = 0;
    WorkTime time;
    std::uint32_t collective = no_collective;
    std::uint32_t waits = none;  ///< index of a Progress, 0 in it where there is nothing to wait for
    TransferSide transfer = TransferSide::none;
    std::uint32_t channel = no_channel;
};

class SectionLowering {
public:
    SectionLowering(const Section& section, StepCosts& costs) : section_(section), costs_(costs) {
        learnt_.assign(section_.operations.size(), none);
        awaited_.assign(section_.operations.size(), false);
        entries_.reserve(section_.operations.size() / 2);
    }

    TimedSection lower() {
        for (OperationId id = 0; id < section_.operations.size(); ++id)
            std::visit([&](const auto& body) { add(id, body); }, section_.operations[id].body);
        return to_nodes();
    }

private:
    /// What a lane's next operation may take as ended when it starts. Operations behind each other on a lane
    /// mostly learn of nothing but their predecessor's end: they share one entry of facts_.
    struct Knowledge {
        Progress progress{};
        std::uint32_t facts = none;  ///< index of `progress` without the lane's own
    };

    void add(OperationId, const Allocate&) {}
    void add(OperationId id, const Free&) { add_host(id, 0); }
    void add(OperationId id, const Wait&) { add_host(id, 0); }
    void add(OperationId id, const LoadBatch& load) { add_host(id, costs_.time(load).seconds); }
    void add(OperationId id, const Collective& body) {
        const std::uint32_t index = costs_.collective(body);
        add_on_stream(id, {costs_.collective_cost(index).seconds()}, index);
    }
    void add(OperationId id, const Transfer& body) {
        const std::uint32_t index = body.send ? costs_.message(body) : no_collective;
        add_on_stream(id, {body.send ? costs_.collective_cost(index).seconds() : 0}, index);
        entries_.back().transfer = body.send ? TransferSide::send : TransferSide::receive;
        entries_.back().channel = body.channel;
    }
    template <class Work>
    void add(OperationId id, const Work& work) {
        add_on_stream(id, costs_.time(work), no_collective);
    }

    std::size_t lane_of(OperationId id) const {
        return static_cast<std::size_t>(section_.operations[id].stream);
    }

    /// How far every lane has come once `id` has ended.
    Progress known_at_end(OperationId id) const {
        Progress known = facts_[learnt_[id]];
        known[lane_of(id)] = id + 1;
        return known;
    }

    /// What `id` waits for beyond `known`, which takes up what is known once those have ended.
    Progress new_waits(OperationId id, Progress& known) {
        Progress result{};
        for (const OperationId wait : section_.operations[id].waits) {
            if (learnt_[wait] == none) continue;  // issued by the host before: nothing to wait for
            const std::size_t lane = lane_of(wait);
            if (wait + 1 > known[lane]) result[lane] = std::max(result[lane], wait + 1);
        }
        for (std::size_t lane = 0; lane < stream_count; ++lane) {
            if (result[lane] == 0) continue;
            merge(known, known_at_end(result[lane] - 1));
            awaited_[result[lane] - 1] = true;
        }
        return result;
    }

    std::uint32_t keep(const Progress& waits) {
        if (waits == Progress{}) return none;
        waits_.push_back(waits);
        return static_cast<std::uint32_t>(waits_.size() - 1);
    }

    void add_host(OperationId id, double seconds) {
        if (seconds == 0 && section_.operations[id].waits.empty()) return;
        Progress& host = lanes_[host_lane].progress;
        const std::uint32_t waits = keep(new_waits(id, host));
        if (seconds == 0 && waits == none) return;
        ++host_nodes_;
        host[host_lane] = host_nodes_ + 1;
        entries_.push_back({.lane = host_lane, .operation = id, .time = {seconds}, .waits = waits});
    }

    void add_on_stream(OperationId id, const WorkTime& time, std::uint32_t collective) {
        const std::size_t lane = lane_of(id);
        Knowledge& known = lanes_[lane];
        std::uint32_t waits = none;
        // What the host knows changes with its nodes only.
        const bool follows_host = host_nodes_ + 1 > known.progress[host_lane];
        if (follows_host || !section_.operations[id].waits.empty()) {
            waits = learn(id, known, follows_host);
            facts_.push_back(known.progress);
            known.facts = static_cast<std::uint32_t>(facts_.size() - 1);
        }
        known.progress[lane] = id + 1;
        learnt_[id] = known.facts;
        entries_.push_back(
            {.lane = lane, .operation = id, .time = time, .collective = collective, .waits = waits});
    }

    /// Takes up what `id` learns from the host and from what it waits for; returns its waits.
    std::uint32_t learn(OperationId id, Knowledge& known, bool follows_host) {
        merge(known.progress, lanes_[host_lane].progress);
        known.progress[host_lane] = host_nodes_ + 1;
        Progress waits = new_waits(id, known.progress);
        if (follows_host) waits[host_lane] = host_nodes_ + 1;
        return keep(waits);
    }

    TimedSection to_nodes() const {
        TimedSection result{.repeat = section_.repeat, .nodes = {}, .items = {}};
        result.items.reserve(entries_.size());
        std::array<const Entry*, lane_count> last{};
        std::array<std::uint32_t, lane_count> last_node{};
        std::vector<std::uint32_t> node_of(section_.operations.size(), no_node), host_nodes;
        for (const Entry& entry : entries_) {
            const Entry* before = last[entry.lane];
            const bool joins = entry.lane != host_lane && before != nullptr && entry.waits == none &&
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
                result.items.push_back({entry.operation, last_node[entry.lane], node.seconds,
                                        node.seconds + entry.time.seconds});
            WorkTime work = node.work();
            node.set_work(work += entry.time);
        }
        return result;
    }

    TimedNode make_node(const Entry& entry, const std::vector<std::uint32_t>& node_of,
                        const std::vector<std::uint32_t>& host_nodes) const {
        TimedNode node{.lane = static_cast<std::uint8_t>(entry.lane),
                       .collective = entry.collective,
                       .transfer = entry.transfer,
                       .channel = entry.channel};
        if (entry.waits == none) return node;
        const Progress& after = waits_[entry.waits];
        for (std::size_t lane = 0; lane < stream_count; ++lane)
            if (after[lane] > 0) node.after[lane] = node_of[after[lane] - 1];
        const std::uint32_t host = after[host_lane];
        if (host > 0) node.after[host_lane] = host == 1 ? host_at_start : host_nodes[host - 2];
        return node;
    }

    const Section& section_;
    StepCosts& costs_;
    std::array<Knowledge, lane_count> lanes_{};
    std::vector<Progress> facts_, waits_;
    std::vector<std::uint32_t> learnt_;  ///< by operation on a stream: facts known once it has ended
    std::vector<bool> awaited_;          ///< another lane waits for the operation
    std::uint32_t host_nodes_ = 0;
    std::vector<Entry> entries_;
};

}  // namespace

TimedSection lower(const Section& section, StepCosts& costs) {
    return SectionLowering(section, costs).lower();
}

}  // namespace zeroplan
