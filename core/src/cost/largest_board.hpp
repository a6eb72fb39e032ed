#pragma once
#include <cstdint>

namespace zeroplan::cost {

/// The largest board of a compute capability (NVIDIA's data sheets), for what a GPU's own figures don't
/// state.
struct Board {
    double watts = 0;  ///< at which the peak rates hold
    double multiprocessors = 0;
};
/// 0 and what isn't known: an A100's, as of a GPU that isn't NVIDIA's; beyond 100: a B200's.
Board largest_board(std::uint32_t compute_capability);

}  // namespace zeroplan::cost
