#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "fold/layer_run.hpp"
#include "zeroplan/plan.hpp"

namespace zeroplan {

/// Live bytes after one allocation or release, and which one it was.
struct LiveMoment {
    std::uint64_t key = 0;  ///< what is allocated or freed, in which phase and for which block
    Phase phase = Phase::load;
    Bytes live;
};

/// A program's moments from load to a steady step by key, those of a key in issue order, without those of the
/// run's blocks between its first `ends` and its last `ends`; blocks behind them are numbered as if there
/// were none between. Nothing if a buffer belongs to no block alone.
std::optional<std::vector<LiveMoment>> live_curve(const StepProgram& program, const ModelSpec& model,
                                                  const ShardLayout& layout, LayerRun run,
                                                  std::uint32_t ends);

struct LivePeak {
    Bytes live;
    Phase phase = Phase::load;
    friend bool operator==(const LivePeak&, const LivePeak&) = default;
};

/// The highest moment of a run with `more` blocks beyond those of `shorter`, where `longer` has one beyond
/// them. Every moment is a straight line in the number of blocks, and so are the moments of the blocks
/// between from one to the next: the highest is at an end. Nothing if the two don't do the same things.
std::optional<LivePeak> carried_on(const std::vector<LiveMoment>& shorter,
                                   const std::vector<LiveMoment>& longer, std::uint64_t more);

/// The highest moment of a whole program.
LivePeak highest_live(const StepProgram& program);

}  // namespace zeroplan
