#pragma once
#include <QString>

#include "zeroplan/gui/planner.hpp"
#include "zeroplan/gui/simulation.hpp"

namespace zeroplan::gui {

/// Whether it asks for more than failures, which leave the step as it is.
bool slows_a_step(const WhatIf& what_if);

/// What the what-if comes to, as `zeroplan sim` says it: the step cause by cause, and a long run with
/// failures. Before it is simulated the causes alone; where nothing is asked, how to ask.
QString what_if_words(const Planned& planned, const Simulated* simulated);

/// The same in a sentence for beside the step time; "" where nothing is asked.
QString what_if_sentence(const Planned& planned, const Simulated* simulated);

}  // namespace zeroplan::gui
