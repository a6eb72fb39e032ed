#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace zeroplan::runner {

/// SHA-256 (FIPS 180-4) of bytes given piece by piece.
class Sha256 {
public:
    void add(const void* bytes, std::size_t n);
    /// 64 hexadecimal digits; nothing may be added afterwards.
    std::string finish();

private:
    void compress(const unsigned char* block);

    std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<unsigned char, 64> rest_{};
    std::uint64_t length_ = 0;
};

}  // namespace zeroplan::runner
