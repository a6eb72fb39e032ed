#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace zeroplan {

/// A parameter as the buffer sees it, in registration order.
struct BufferedParameter {
    std::uint64_t numel = 0;
    bool own_bucket = false;  ///< an embedding shared with another pipeline stage
};

struct MegatronBufferOptions {
    std::uint64_t data_parallel = 1;           ///< ranks that share the optimizer's state
    bool distributed_optimizer = false;        ///< no padding at all without it
    std::optional<std::uint64_t> bucket_size;  ///< elements; nullopt: one bucket
    bool pad_for_high_nccl_busbw = false;
};

/// Where each parameter stands in a chunk's contiguous parameter and gradient buffers.
struct MegatronBuffer {
    std::vector<std::uint64_t> offsets;      ///< by parameter, elements
    std::vector<std::uint64_t> bucket_ends;  ///< elements, padded
    std::uint64_t numel = 0;                 ///< whole buffer, padding included
    friend bool operator==(const MegatronBuffer&, const MegatronBuffer&) = default;
};

/// Parameters in reverse registration order; with the distributed optimizer each starts at a multiple of 64
/// elements and a bucket that has reached bucket_size ends at a multiple of lcm(N, 128), or lcm(N, 128, 2^16)
/// for high NCCL bus bandwidth. source: DistributedOptimizer._compute_per_buffer_param_layout.
MegatronBuffer megatron_buffer(const std::vector<BufferedParameter>& parameters,
                               const MegatronBufferOptions& options);

/// Bucket size that DistributedDataParallel takes by default: max(40e6, 1e6 · N) elements.
std::uint64_t default_bucket_size(std::uint64_t data_parallel);

/// Elements [begin, end) of one parameter that a rank of the optimizer's group owns.
struct OwnedPiece {
    std::uint32_t parameter = 0;
    std::uint64_t numel = 0;
    friend bool operator==(const OwnedPiece&, const OwnedPiece&) = default;
};

/// What rank `rank` owns: the rank's equal share of every bucket, cut at parameter boundaries. In buffer
/// order.
std::vector<OwnedPiece> owned_pieces(const MegatronBuffer& buffer,
                                     const std::vector<BufferedParameter>& parameters, std::uint64_t rank,
                                     std::uint64_t data_parallel);

}  // namespace zeroplan
