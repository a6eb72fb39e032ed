#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "zeroplan/model_spec.hpp"
#include "zeroplan/step_program.hpp"

namespace zeroplan {

/// Gradients that are all-reduced together: parameters in reverse order, until the limit is reached.
struct DdpBucket {
    std::vector<std::uint32_t> parameters;
    std::uint64_t elements = 0;
    BufferId buffer = no_buffer;
    std::size_t missing = 0;  ///< gradients that this backward hasn't produced yet
};

/// `element_bytes`: of a gradient. source: torch/csrc/distributed/c10d/reducer.cpp
/// (compute_bucket_assignment_by_size)
std::vector<DdpBucket> ddp_buckets(const ModelSpec& model, std::uint64_t element_bytes);

}  // namespace zeroplan
