#pragma once
#include <memory>

#include "engines/activation_walk.hpp"
#include "engines/fsdp2_gradients.hpp"
#include "engines/fsdp2_parameters.hpp"

namespace zeroplan {

/// Runs blocks forward and backward with the units that they read gathered around them.
/// source: torch/distributed/fsdp/_fully_shard/_fsdp_state.py (PyTorch 2.6)
class Fsdp2Blocks {
public:
    Fsdp2Blocks(const Fsdp2Rank& rank, ProgramBuilder& builder, Fsdp2Parameters& parameters,
                Fsdp2Gradients& gradients);
    Fsdp2Blocks(const Fsdp2Blocks&) = delete;  // the hooks point here
    Fsdp2Blocks& operator=(const Fsdp2Blocks&) = delete;

    /// `workspace`: cuBLAS's, that matrix products use.
    std::unique_ptr<ActivationWalk> new_walk(BufferId workspace) const;
    /// `last`: no block behind it gathers, so that its own gather's buffer goes before it runs.
    void forward(ActivationWalk& walk, std::uint32_t block, bool last);
    /// Gathers what the block before it reads ahead, unless it is the `first` one.
    void backward(ActivationWalk& walk, std::uint32_t block, bool first);
    /// Reshards a unit whose backward has ended and reduces its gradients.
    void post_backward(UnitIndex u);

private:
    std::vector<UnitIndex> units_of(std::uint32_t block) const {
        return units_read_by(rank_.model(), rank_.units(), block);
    }

    const Fsdp2Rank& rank_;
    ProgramBuilder& builder_;
    Fsdp2Parameters& parameters_;
    Fsdp2Gradients& gradients_;
    ActivationWalk::Hooks hooks_;
};

}  // namespace zeroplan
