#pragma once
#include <vector>

#include "engines/native_rank.hpp"
#include "engines/program_builder.hpp"

namespace zeroplan {

/// Stage 3: units are gathered one block ahead of their use and freed right after it. At other stages every
/// rank has them whole, and nothing happens here.
class NativeParameters {
public:
    using UnitIndex = NativeRank::UnitIndex;

    NativeParameters(NativeRank& rank, ProgramBuilder& builder) : rank_(rank), builder_(builder) {}

    /// `unit` is gathered if it isn't yet, then `next` is prefetched (depth 1); unit_count() = nothing next.
    void gather_for(UnitIndex unit, UnitIndex next);
    std::vector<OperationId> gather_events(UnitIndex unit) const;
    /// Right after use. A tied unit that the prefetched neighbour needs as well stays for it.
    void release(UnitIndex unit);

    BufferId values(UnitIndex unit) const {
        return rank_.stage() == 3 ? rank_.units[unit].gathered : rank_.units[unit].parameters;
    }

private:
    void gather(UnitIndex unit);
    bool is_prefetched_elsewhere(UnitIndex unit, UnitIndex user) const;

    NativeRank& rank_;
    ProgramBuilder& builder_;
};

}  // namespace zeroplan
