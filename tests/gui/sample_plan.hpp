#pragma once
#include <memory>
#include <vector>

#include "zeroplan/plan.hpp"
#include "zeroplan/step_timeline.hpp"

namespace zeroplan::gui::test {

/// Ranks of one group and the bytes of its steady step, for plans made by hand.
struct SampleGroup {
    std::vector<RankRange> ranks;
    std::uint64_t activations = 0, allocated_extra = 0, slack = 0, runtime = 0;
};

/// A plan of two blocks of one operator each, 1024 B of parameters and 512 B of gradients a rank, and of each
/// group the activations given; capacity in bytes; 8 GPUs a node. The step is two "micro_batch" and one
/// "last_micro_batch_and_step".
Plan sample_plan(const std::vector<SampleGroup>& groups, std::uint64_t capacity);
std::shared_ptr<const Plan> shared_sample_plan(const std::vector<SampleGroup>& groups,
                                               std::uint64_t capacity);

/// Ranks 0 … n − 1 in one group: 2048 B of activations, 256 B of slack, 4096 B of runtime; capacity 16 KiB.
Plan uniform_plan(std::uint64_t ranks);

/// The step of sample_plan in time: every operation takes 1 ms, one after the other.
StepTimeline sample_timeline(const Plan& plan);

}  // namespace zeroplan::gui::test
