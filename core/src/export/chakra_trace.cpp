#include "zeroplan/chakra_trace.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <map>

#include "cost/group_shape.hpp"
#include "export/protobuf_writer.hpp"

namespace zeroplan {
namespace {

// Numbers of et_def.proto.
constexpr std::uint32_t node_id = 1, node_name = 2, node_type = 3, node_data_deps = 5, node_duration = 7,
                        node_attribute = 10;
constexpr std::uint32_t attribute_name = 1, as_int32 = 7, as_int64 = 9, as_bool = 27, as_string = 29;
enum class NodeType : std::uint32_t { compute = 4, send = 5, receive = 6, collective = 7 };
constexpr const char* schema_version = "0.0.4";
constexpr std::uint64_t kinds_of_groups = 16;

std::uint64_t chakra_type(CollectiveKind kind) {
    switch (kind) {
        case CollectiveKind::all_reduce:
            return 0;
        case CollectiveKind::all_gather:
            return 2;
        case CollectiveKind::broadcast:
            return 5;
        case CollectiveKind::all_to_all:
            return 6;
        case CollectiveKind::reduce_scatter:
            return 7;
    }
    return 0;
}

void attribute(ProtobufWriter& node, const char* name, std::uint32_t field, std::uint64_t value) {
    node.message(node_attribute, ProtobufWriter().text(attribute_name, name).varint(field, value));
}

void attribute(ProtobufWriter& node, const char* name, const std::string& value) {
    node.message(node_attribute, ProtobufWriter().text(attribute_name, name).text(as_string, value));
}

std::uint64_t micros(double seconds) {
    return static_cast<std::uint64_t>(std::llround(seconds * 1e6));
}

std::uint32_t program_of(const Plan& plan, std::uint64_t rank) {
    for (const RankGroup& group : plan.rank_groups)
        for (const RankRange& range : group.ranks)
            if (rank >= range.first && rank <= range.last) return group.program;
    throw Error(ErrorCode::invalid_input, fmt::format("there is no rank {}", rank),
                fmt::format("ranks are 0 to {}", plan.scenario.world_size() - 1));
}

GroupShape shape_of(const Plan& plan, GroupKind group, std::uint32_t program) {
    return group_shape(group, group_sizes(plan.scenario.training, layout_of(plan, program).shard_group),
                       plan.scenario.world_size());
}

/// What a node of a section runs.
struct NodeItems {
    const TimedItem* first = nullptr;  ///< nullptr: nothing but the host
    std::size_t count = 0;
};

std::vector<NodeItems> items_by_node(const TimedSection& timed) {
    std::vector<NodeItems> nodes(timed.nodes.size());
    for (const TimedItem& item : timed.items) {
        NodeItems& node = nodes[item.node];
        if (node.count++ == 0) node.first = &item;
    }
    return nodes;
}

/// "forward model.layers.3 mlp.up_proj and 4 more"
std::string name_of(const Plan& plan, std::uint32_t program, std::uint32_t section, const NodeItems& items) {
    if (items.count == 0) return "host";
    const StepProgram& steps = plan.programs[program];
    const std::string name = describe(steps.step[section].operations[items.first->operation], steps,
                                      model_of(plan, program), layout_of(plan, program));
    return items.count == 1 ? name : fmt::format("{} and {} more", name, items.count - 1);
}

const Transfer* transfer_of(const StepProgram& program, std::uint32_t section, const NodeItems& items) {
    if (items.count == 0) return nullptr;
    return std::get_if<Transfer>(&program.step[section].operations[items.first->operation].body);
}

/// Bytes that one rank puts into a collective.
std::uint64_t input_bytes(CollectiveKind kind, double bytes, std::uint64_t ranks) {
    const auto whole = static_cast<std::uint64_t>(bytes);
    return kind == CollectiveKind::all_gather ? whole / ranks : whole;
}

}  // namespace

ChakraTraces::ChakraTraces(const Plan& plan) : plan_(plan), programs_(time_programs(plan)) {
    for (std::uint32_t p = 0; p < plan.programs.size(); ++p) work_.push_back(work_of(p));
}

std::vector<ChakraTraces::Work> ChakraTraces::work_of(std::uint32_t program) const {
    std::vector<Work> list;
    std::array<std::uint64_t, lane_count> last{};
    std::array<bool, lane_count> any{};
    const TimedProgram& timed = programs_[program];
    for (std::uint32_t s = 0; s < timed.sections.size(); ++s) {
        const TimedSection& section = timed.sections[s];
        const std::vector<NodeItems> items = items_by_node(section);
        std::vector<Work> once;
        for (std::uint32_t n = 0; n < section.nodes.size(); ++n) {
            const TimedNode& node = section.nodes[n];
            const bool moves = node.transfer != TransferSide::none;
            once.push_back({name_of(plan_, program, s, items[n]),
                            &node,
                            moves ? transfer_of(plan_.programs[program], s, items[n]) : nullptr,
                            {}});
        }
        for (std::uint64_t iteration = 0; iteration < section.repeat; ++iteration) {
            const std::uint64_t first = list.size();
            const bool host_known = any[host_lane];
            const std::uint64_t host = last[host_lane];
            for (const Work& work : once) {
                Work one = work;
                const std::size_t lane = one.node->lane;
                if (any[lane]) one.after.push_back(last[lane]);
                for (const std::uint32_t wait : one.node->after) {
                    if (wait == host_at_start && host_known) one.after.push_back(host);
                    if (wait < host_at_start) one.after.push_back(first + wait);
                }
                last[lane] = list.size();
                any[lane] = true;
                list.push_back(std::move(one));
            }
        }
    }
    return list;
}

std::uint64_t ChakraTraces::communicator(GroupKind group, std::uint64_t rank, std::uint32_t program) const {
    return shape_of(plan_, group, program).group_of(rank) * kinds_of_groups +
           static_cast<std::uint64_t>(group);
}

std::string ChakraTraces::encode(const Work& work, std::uint64_t id, std::uint64_t rank,
                                 std::uint32_t program) const {
    const TimedNode& node = *work.node;
    const TimedCollective* collective =
        node.collective == no_collective ? nullptr : &programs_[program].collectives[node.collective];
    const std::uint64_t ranks = collective ? shape_of(plan_, collective->group, program).count : 1;
    NodeType type = NodeType::compute;
    if (work.transfer != nullptr)
        type = work.transfer->send ? NodeType::send : NodeType::receive;
    else if (collective != nullptr && ranks > 1)
        type = NodeType::collective;

    ProtobufWriter out;
    out.varint(node_id, id).text(node_name, work.name).varint(node_type, static_cast<std::uint32_t>(type));
    for (const std::uint64_t before : work.after) out.varint(node_data_deps, before);
    out.varint(node_duration, micros(node.seconds));
    attribute(out, "is_cpu_op", as_bool, node.lane == host_lane ? 1 : 0);
    if (type == NodeType::collective) {
        attribute(out, "comm_type", as_int64, chakra_type(collective->kind));
        attribute(out, "comm_size", as_int64, input_bytes(collective->kind, collective->cost.bytes, ranks));
        attribute(out, "pg_name", fmt::format("{}", communicator(collective->group, rank, program)));
    } else if (work.transfer != nullptr) {
        const std::uint64_t world = plan_.scenario.world_size();
        const std::uint64_t stage = world / plan_.scenario.training.pipeline_parallel;
        const bool up = work.transfer->to_next == work.transfer->send;
        const std::uint64_t peer = (rank + (up ? stage : world - stage)) % world;
        attribute(out, "comm_src", as_int32, work.transfer->send ? rank : peer);
        attribute(out, "comm_dst", as_int32, work.transfer->send ? peer : rank);
        attribute(out, "comm_tag", as_int32, work.transfer->channel);
        attribute(out, "comm_size", as_int64,
                  work.transfer->elements * bytes_per_element(work.transfer->dtype));
    }
    return out.delimited();
}

std::string ChakraTraces::of_rank(std::uint64_t rank) const {
    const std::uint32_t program = program_of(plan_, rank);
    std::string out = ProtobufWriter().text(1, schema_version).delimited();
    const std::vector<Work>& work = work_[program];
    for (std::uint64_t id = 0; id < work.size(); ++id) out += encode(work[id], id, rank, program);
    return out;
}

std::set<GroupKind> ChakraTraces::groups_of(std::uint32_t program) const {
    std::set<GroupKind> groups;
    for (const Work& work : work_[program])
        if (work.node->collective != no_collective && work.transfer == nullptr)
            groups.insert(programs_[program].collectives[work.node->collective].group);
    return groups;
}

std::string ChakraTraces::communicators() const {
    std::map<std::uint64_t, std::vector<std::uint64_t>> members;
    for (std::uint64_t rank = 0; rank < plan_.scenario.world_size(); ++rank) {
        const std::uint32_t program = program_of(plan_, rank);
        for (const GroupKind group : groups_of(program))
            if (shape_of(plan_, group, program).count > 1)
                members[communicator(group, rank, program)].push_back(rank);
    }
    std::string out = "{";
    for (const auto& [number, ranks] : members)
        out += fmt::format("{}\n \"{}\": [{}]", out.size() > 1 ? "," : "", number, fmt::join(ranks, ", "));
    return out + "\n}\n";
}

}  // namespace zeroplan
