#pragma once
#include <cmath>
#include <cstdint>
#include <numbers>

namespace zeroplan::runner {

/// Random numbers by place instead of by sequence: the same (seed, stream, index) gives the same number on
/// every rank, at every ZeRO stage and world size, in whatever order they are drawn. Three rounds of the
/// SplitMix64 finalizer (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
constexpr std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}
constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
    return mix(mix(mix(seed) ^ stream) ^ index);
}

/// Uniform on a grid of 2^24 points of [-1, 1).
constexpr float symmetric_uniform(std::uint64_t bits) {
    return static_cast<float>(static_cast<std::int64_t>(bits >> 40) - (1 << 23)) * 0x1p-23F;
}

/// Standard normal, by Box and Muller's transform of the two halves of `bits`.
inline float standard_normal(std::uint64_t bits) {
    const double u = (static_cast<double>(bits >> 32) + 0.5) * 0x1p-32;
    const double v = (static_cast<double>(bits & 0xffffffffU) + 0.5) * 0x1p-32;
    return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v));
}

}  // namespace zeroplan::runner
