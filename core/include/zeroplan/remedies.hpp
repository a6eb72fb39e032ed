#pragma once
#include <cstdint>
#include <vector>

#include "zeroplan/plan.hpp"

namespace zeroplan {

/// The cheapest changes that make a plan fit which doesn't, at most three, each found by planning the
/// scenario again with that one change: a higher ZeRO stage, recomputation, smaller micro-batches with the
/// same batch a step, flash attention, more nodes, GPUs with more memory. Where no single change is enough,
/// two of different kinds together, neither stronger than needed. Changes that keep the hardware come first,
/// then by the time of a step; a change that fits marginally gives way to a stronger one of its kind that
/// fits for certain. Where the list has room, the longest half, quarter … of the sequence that fits. If
/// nothing makes it fit, what comes closest, whose verdict says so. Empty for a plan that fits.
///
/// No further change is tried once the programs of those that were have `most_operations` operations: the
/// default is out of reach of models with hundreds of layers, and seconds for one with thousands.
std::vector<Remedy> find_remedies(const Plan& plan, std::uint64_t most_operations = 20'000'000);

}  // namespace zeroplan
