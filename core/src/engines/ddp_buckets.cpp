#include "engines/ddp_buckets.hpp"

namespace zeroplan {
namespace {

// torch/csrc/distributed/c10d/reducer.hpp: the first bucket is small, so that reduction starts early.
constexpr std::uint64_t first_bucket_bytes = 1ULL << 20, bucket_bytes = 25ULL << 20;

}  // namespace

std::vector<DdpBucket> ddp_buckets(const ModelSpec& model, std::uint64_t element_bytes) {
    std::vector<DdpBucket> buckets;
    std::uint64_t limit = first_bucket_bytes;
    bool full = true;
    for (auto p = static_cast<std::uint32_t>(model.parameters.size()); p-- > 0;) {
        const Parameter& parameter = model.parameters[p];
        if (!parameter.trainable || parameter.shared_with) continue;
        if (full) {
            if (!buckets.empty()) limit = bucket_bytes;
            buckets.emplace_back();
        }
        buckets.back().parameters.push_back(p);
        buckets.back().elements += parameter.numel;
        full = buckets.back().elements * element_bytes >= limit;
    }
    return buckets;
}

}  // namespace zeroplan
