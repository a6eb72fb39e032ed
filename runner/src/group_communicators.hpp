#pragma once
#include <map>
#include <utility>

#include "zeroplan/runner/host_communicator.hpp"
#include "zeroplan/step_program.hpp"

namespace zeroplan::runner {

/// Where a rank stands among the ranks that share one copy: shard groups are consecutive ranks, and a rank's
/// replicas are the ranks at its place in the other shard groups.
struct ShardPlace {
    std::uint64_t rank = 0, world = 1, shard_group = 1;

    std::uint64_t slice() const { return rank % shard_group; }
    std::vector<int> members(GroupKind group) const;
};

/// One communicator for every stream and group of ranks that the program uses, made in the same order on all
/// ranks.
class GroupCommunicators {
public:
    GroupCommunicators(const HostWorld& world, const StepProgram& program, const ShardPlace& place);
    HostCommunicator& of(Stream stream, GroupKind group) { return communicators_.at({stream, group}); }

private:
    std::map<std::pair<Stream, GroupKind>, HostCommunicator> communicators_;
};

}  // namespace zeroplan::runner
