#include "activations_on_host.hpp"

#include <algorithm>

#include "engines/torch_host.hpp"

namespace zeroplan {
namespace {

class HostActivations {
public:
    void copy(const HostCopy& copy) {
        if (copy.path == CopyPath::to_host)
            keep(copy);
        else if (copy.path == CopyPath::to_device)
            give_up(copy);
    }
    HostMemory most() const { return {pinned_.total(), Bytes{most_pageable_}}; }

private:
    void keep(const HostCopy& copy) {
        if (copy.pinned) return pinned_.allocate(copy.bytes);
        pageable_ += copy.bytes;
        most_pageable_ = std::max(most_pageable_, pageable_);
    }
    void give_up(const HostCopy& copy) {
        if (copy.pinned) return pinned_.free(copy.bytes);
        pageable_ -= std::min(pageable_, copy.bytes);
    }

    PinnedBlocks pinned_;
    std::uint64_t pageable_ = 0, most_pageable_ = 0;
};

}  // namespace

HostMemory activations_on_host(const StepProgram& program) {
    HostActivations activations;
    for (const Section& section : program.step)
        for (const Operation& operation : section.operations)
            if (const auto* copy = std::get_if<HostCopy>(&operation.body))
                if (copy->role == BufferRole::activation) activations.copy(*copy);
    return activations.most();
}

void add_activations(HostPhases& phases, const StepProgram& program) {
    const HostMemory most = activations_on_host(program);
    for (const Phase phase : {Phase::first_step, Phase::steady_step, Phase::save}) {
        HostMemory& memory = phases[static_cast<std::size_t>(phase)];
        memory.pinned += most.pinned;
        if (phase != Phase::save) memory.pageable += most.pageable;
    }
}

}  // namespace zeroplan
