#pragma once
#include <cstdint>

#include "buffer_table.hpp"
#include "zeroplan/model_spec.hpp"
#include "zeroplan/shard_layout.hpp"

namespace zeroplan::runner {

/// The micro-batch that is being worked on.
struct MicroBatch {
    std::uint64_t samples =
        0;                 ///< real ones: a partial batch uses the front of the buffers, an empty one none
    bool is_first = true;  ///< of its step: gradients begin anew
    double loss_sum = 0;   ///< forward of the loss adds the sum over the samples
};

/// Throws Error{not_supported} naming the first operator that the host back end can't execute. It trains
/// plain stacks: linear, element-wise activation, mean squared error, cross entropy.
void check_operators(const ModelSpec& model);

/// Executes one operator, forward or backward, on the buffers that the operation names.
void execute(const Compute& compute, const ModelSpec& model, const ShardLayout& layout,
             const BufferTable& buffers, MicroBatch& batch);

}  // namespace zeroplan::runner
