#pragma once
#include <vector>

#include "engines/megatron_stage.hpp"
#include "zeroplan/plan.hpp"
#include "zeroplan/scenario.hpp"

namespace zeroplan {

/// Bytes that libraries keep inside PyTorch's allocator for the whole run, as named constants.
struct MegatronWorkspaces {
    std::vector<std::uint64_t> bytes;  ///< one allocation each
    std::vector<Constant> constants;
};

/// PyTorch's cuBLAS workspace of the forward and of the backward thread where PyTorch multiplies matrices
/// (`torch_products`), and Transformer Engine's one, or four more where it multiplies experts in groups.
MegatronWorkspaces megatron_workspaces(const Scenario& scenario, const MegatronOptions& options,
                                       bool torch_products, bool grouped_products);

/// Allocates what the libraries, Megatron's global memory buffer and the table of rotary angles keep for the
/// whole run; returns the libraries' constants.
std::vector<Constant> allocate_megatron_workspaces(const MegatronStage& stage, ProgramBuilder& builder);

}  // namespace zeroplan
