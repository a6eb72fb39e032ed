#pragma once
#include <cstdint>
#include <string>

#include "zeroplan/build_model.hpp"

namespace zeroplan {

/// Mamba's sizes (transformers' MambaConfig).
struct MambaConfig {
    std::string name;
    std::uint64_t vocab_size = 0, hidden_size = 0, intermediate_size = 0, num_hidden_layers = 0;
    std::uint64_t state_size = 0, conv_kernel = 0, time_step_rank = 0;
    bool bias = false, conv_bias = true, tie_word_embeddings = true;
};

/// Mamba with its fused kernels (mamba_inner_fn): a layer keeps the packed input projection, the small
/// projections of the state and the scan's output for backward, and runs convolution and time steps again.
ModelSpec build_mamba(const MambaConfig& config, const LoweringOptions& options);

}  // namespace zeroplan
