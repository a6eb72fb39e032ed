#include "engines/megatron_buffer.hpp"

#include <algorithm>
#include <numeric>

#include "zeroplan/units.hpp"

namespace zeroplan {
namespace {

constexpr std::uint64_t parameter_alignment = 64, bucket_alignment = 128, busbw_alignment = 1ULL << 16;

}  // namespace

std::uint64_t default_bucket_size(std::uint64_t data_parallel) {
    return std::max<std::uint64_t>(40'000'000, checked_product(1'000'000, data_parallel));
}

MegatronBuffer megatron_buffer(const std::vector<BufferedParameter>& parameters,
                               const MegatronBufferOptions& options) {
    const bool pads = options.distributed_optimizer;
    std::uint64_t divisor = pads ? std::lcm(options.data_parallel, bucket_alignment) : 1;
    if (pads && options.pad_for_high_nccl_busbw) divisor = std::lcm(divisor, busbw_alignment);

    MegatronBuffer buffer{.offsets = std::vector<std::uint64_t>(parameters.size())};
    std::uint64_t position = 0, bucket_start = 0;
    const auto close = [&] {
        if (position == bucket_start) return;
        position = bucket_start = round_up(position, divisor);
        buffer.bucket_ends.push_back(position);
    };
    for (std::size_t i = parameters.size(); i-- > 0;) {
        const BufferedParameter& parameter = parameters[i];
        if (parameter.own_bucket && pads) close();
        if (pads) position = round_up(position, parameter_alignment);
        buffer.offsets[i] = position;
        position = checked_sum(position, parameter.numel, "gradient buffer elements");
        const bool full = options.bucket_size && position - bucket_start >= *options.bucket_size;
        if (full || (parameter.own_bucket && pads)) close();
    }
    close();
    buffer.numel = position;
    return buffer;
}

std::vector<OwnedPiece> owned_pieces(const MegatronBuffer& buffer,
                                     const std::vector<BufferedParameter>& parameters, std::uint64_t rank,
                                     std::uint64_t data_parallel) {
    std::vector<OwnedPiece> pieces;
    std::size_t next = parameters.size();
    std::uint64_t start = 0;
    for (const std::uint64_t end : buffer.bucket_ends) {
        const std::uint64_t share = (end - start) / data_parallel;
        const std::uint64_t first = start + rank * share, last = first + share;
        for (; next > 0 && buffer.offsets[next - 1] < end; --next) {
            const std::uint64_t begin = std::max(first, buffer.offsets[next - 1]);
            const std::uint64_t finish =
                std::min(last, buffer.offsets[next - 1] + parameters[next - 1].numel);
            if (finish > begin) pieces.push_back({static_cast<std::uint32_t>(next - 1), finish - begin});
        }
        start = end;
    }
    return pieces;
}

}  // namespace zeroplan
