#include "engines/fsdp2_blocks.hpp"

namespace zeroplan {

Fsdp2Blocks::Fsdp2Blocks(const Fsdp2Rank& rank, ProgramBuilder& builder, Fsdp2Parameters& parameters,
                         Fsdp2Gradients& gradients)
    : rank_(rank),
      builder_(builder),
      parameters_(parameters),
      gradients_(gradients),
      hooks_{.parameters = [this](std::uint32_t p) { return parameters_.unsharded(p); },
             .gradients = [this](std::uint32_t p) { return gradients_.gradient(p); },
             .accumulate = [](std::uint32_t) { return false; },
             .after = [this](ComputePhase, std::uint32_t,
                             const Operator&) { gradients_.add_second_contributions(); }} {}

std::unique_ptr<ActivationWalk> Fsdp2Blocks::new_walk(BufferId workspace) const {
    return std::make_unique<ActivationWalk>(rank_.model(), rank_.training(), builder_,
                                            parameter_owners(rank_.model()), workspace,
                                            ActivationWalk::GradientSums::fresh);
}

void Fsdp2Blocks::forward(ActivationWalk& walk, std::uint32_t block, bool last) {
    const std::vector<UnitIndex> units = units_of(block);
    for (const UnitIndex u : units) parameters_.unshard_for_forward(u);
    if (last) parameters_.flush_forward_gather();
    walk.forward(block, hooks_, {});
    for (const UnitIndex u : units) parameters_.reshard_after_forward(u);
}

void Fsdp2Blocks::backward(ActivationWalk& walk, std::uint32_t block, bool first) {
    const std::vector<UnitIndex> units = units_of(block);
    for (const UnitIndex u : units) parameters_.unshard_for_backward(u);
    if (!first)
        for (const UnitIndex u : units_of(block - 1)) parameters_.prefetch(u);
    walk.backward(block, hooks_, {}, false);
    const UnitIndex own = rank_.units().unit_of_block[block];
    if (!rank_.pipelined())
        for (const UnitIndex u : units)
            if (u != own && !rank_.unit(u).is_root) parameters_.reshard(u);
    if (!rank_.unit(own).is_root) post_backward(own);
}

void Fsdp2Blocks::post_backward(UnitIndex u) {
    if (rank_.empty(u)) return;
    // A pipeline leaves parameters gathered until the stage's last backward.
    if (gradients_.reduces() || !rank_.pipelined()) parameters_.reshard(u);
    gradients_.post_backward(u);
}

}  // namespace zeroplan
