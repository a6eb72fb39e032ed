#pragma once
#include <cstdint>
#include <vector>

#include "zeroplan/model_spec.hpp"
#include "zeroplan/plan.hpp"
#include "zeroplan/step_program.hpp"

namespace zeroplan {

/// Muon trains the hidden matrices; embeddings, the output layer and vectors are Adam's.
/// source: Keller Jordan, Muon (kellerjordan.github.io/posts/muon), told by names as DeepSpeed's
/// set_optimizer_flags does
bool trained_by_muon(const Parameter& parameter);

/// The matrices among `parameters` (indices) that Muon trains, equal shapes together.
std::vector<Orthogonalised> muon_matrices(const ModelSpec& model,
                                          const std::vector<std::uint32_t>& parameters);

/// Elements of bf16 that orthogonalising one of `matrices` works on at most: the iterate, its successor and
/// two squares of the smaller side.
std::uint64_t orthogonalising_workspace(const std::vector<Orthogonalised>& matrices);

Constant newton_schulz_constant();

}  // namespace zeroplan
