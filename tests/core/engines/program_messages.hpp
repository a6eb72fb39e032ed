#pragma once
#include <cstdint>
#include <map>
#include <utility>

#include "zeroplan/plan.hpp"

namespace zeroplan {

using CollectiveSize = std::pair<CollectiveKind, std::uint64_t>;

/// Elements of the collectives of one group in a step: how many there are of each.
inline std::map<CollectiveSize, std::uint64_t> collectives_of(const Plan& plan, GroupKind group,
                                                              std::uint32_t program = 0) {
    std::map<CollectiveSize, std::uint64_t> found;
    for (const Section& section : plan.programs[program].step)
        for (const Operation& operation : section.operations)
            if (const auto* c = std::get_if<Collective>(&operation.body); c != nullptr && c->group == group)
                found[{c->kind, c->elements}] += section.repeat;
    return found;
}

/// By channel: 0 where every message that is sent is received.
inline std::map<std::uint32_t, std::int64_t> sent_less_received(const Plan& plan) {
    std::map<std::uint32_t, std::int64_t> balance;
    for (const StepProgram& program : plan.programs)
        for (const Section& section : program.step)
            for (const Operation& operation : section.operations)
                if (const auto* t = std::get_if<Transfer>(&operation.body))
                    balance[t->channel] += static_cast<std::int64_t>(section.repeat) * (t->send ? 1 : -1);
    return balance;
}

}  // namespace zeroplan
