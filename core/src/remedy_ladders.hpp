#pragma once
#include <string>
#include <vector>

#include "zeroplan/io.hpp"

namespace zeroplan {

/// One change of a scenario, on the command line and as settings.
struct Change {
    std::string flags;  ///< "--micro-batch 2 --grad-accum 4"
    std::vector<Setting> settings;
};

/// Changes of one kind, the mildest first: the first that fits is the one to name.
struct Ladder {
    std::vector<Change> changes;
    std::string price;  ///< what every change of the ladder costs, in words
    bool needs_hardware = false;
    bool gradual = true;   ///< where one change doesn't help, a stronger one doesn't either
    bool halving = false;  ///< every change gains at most half of what the one before it gained
};

/// The ladders that a scenario can be helped with.
std::vector<Ladder> remedy_ladders(const Scenario& scenario);

/// Halves of the sequence length: another job than the one that was asked for, so that these stand for
/// themselves. Empty where samples have no length that can be chosen.
Ladder shorter_sequences(const Scenario& scenario);

}  // namespace zeroplan
