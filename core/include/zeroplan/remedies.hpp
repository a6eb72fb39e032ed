#pragma once
#include <vector>

#include "zeroplan/plan.hpp"

namespace zeroplan {

/// The cheapest changes that make a plan fit which doesn't, at most three, each found by planning the
/// scenario again with that one change: a higher ZeRO stage, recomputation, smaller micro-batches with the
/// same batch a step, flash attention, more nodes, GPUs with more memory. Where no single change is enough,
/// two of different kinds together, neither stronger than needed. Changes that keep the hardware come first,
/// then by the time of a step. If nothing makes it fit, what comes closest, whose verdict says so. Empty for
/// a plan that fits.
std::vector<Remedy> find_remedies(const Plan& plan);

}  // namespace zeroplan
