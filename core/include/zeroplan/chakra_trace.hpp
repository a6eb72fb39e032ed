#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "zeroplan/plan.hpp"
#include "zeroplan/timed_program.hpp"

namespace zeroplan {

/// A steady step as MLCommons Chakra execution traces, which ASTRA-sim and others replay: one trace a rank,
/// a stream of length-delimited protobuf messages, GlobalMetadata and then one Node for each piece of work
/// between two waits. A node depends on the one before it on its stream and on what it waits for, so that the
/// graph is the one that zeroplan itself times. Computation carries the duration that it has alone: what
/// collectives beside it slow it down by, the format has no place for, and a replay is that much shorter.
/// Collectives carry type, the bytes that a rank puts in, and the communicator's number as pg_name; pipeline
/// messages their ranks. Durations are whole microseconds, as the format has them. source: mlcommons/chakra
/// schema/protobuf/et_def.proto and et_feeder (types of the attributes)
class ChakraTraces {
public:
    /// Throws what time_program() throws.
    explicit ChakraTraces(const Plan& plan);
    ChakraTraces(const ChakraTraces&) = delete;
    ChakraTraces& operator=(const ChakraTraces&) = delete;

    std::string of_rank(std::uint64_t rank) const;
    /// JSON: number of a communicator → its ranks, of all that the traces name.
    std::string communicators() const;

private:
    /// The step of one program without what differs between its ranks.
    struct Work {
        std::string name;
        const TimedNode* node = nullptr;
        const Transfer* transfer = nullptr;
        std::vector<std::uint64_t> after;  ///< ids of other nodes
    };
    std::vector<Work> work_of(std::uint32_t program) const;
    std::string encode(const Work& work, std::uint64_t id, std::uint64_t rank, std::uint32_t program) const;
    std::set<GroupKind> groups_of(std::uint32_t program) const;
    std::uint64_t communicator(GroupKind group, std::uint64_t rank, std::uint32_t program) const;

    const Plan& plan_;
    std::vector<TimedProgram> programs_;
    std::vector<std::vector<Work>> work_;  ///< by program
};

}  // namespace zeroplan
