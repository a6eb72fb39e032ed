#include "group_communicators.hpp"

#include <fmt/format.h>

#include <set>

namespace zeroplan::runner {
namespace {

using Use = std::pair<Stream, GroupKind>;

void add_uses(const Section& section, std::set<Use>& uses) {
    for (const Operation& operation : section.operations)
        if (const auto* collective = std::get_if<Collective>(&operation.body))
            uses.insert({operation.stream, collective->group});
}

std::set<Use> uses_of(const StepProgram& program) {
    std::set<Use> uses;
    for (const Section* section : {&program.load, &program.init, &program.save}) add_uses(*section, uses);
    for (const Section& section : program.step) add_uses(section, uses);
    return uses;
}

}  // namespace

std::vector<int> ShardPlace::members(GroupKind group) const {
    std::uint64_t first = 0, stride = 1, count = world;
    if (group == GroupKind::shard_group) {
        first = rank - slice();
        count = shard_group;
    } else if (group == GroupKind::replica_group) {
        first = slice();
        stride = shard_group;
        count = world / shard_group;
    }
    std::vector<int> result;
    for (std::uint64_t i = 0; i < count; ++i) result.push_back(static_cast<int>(first + i * stride));
    return result;
}

GroupCommunicators::GroupCommunicators(const HostWorld& world, const StepProgram& program,
                                       const ShardPlace& place) {
    for (const auto& [stream, group] : uses_of(program)) {
        const std::vector<int> members = place.members(group);
        const std::string name =
            fmt::format("{}/{}/{}", to_string(stream), static_cast<int>(group), members.front());
        communicators_.emplace(Use{stream, group}, HostCommunicator(world, members, name));
    }
}

}  // namespace zeroplan::runner
