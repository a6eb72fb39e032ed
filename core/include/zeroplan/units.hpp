#pragma once
#include <compare>
#include <cstdint>
#include <limits>
#include <string>

#include "zeroplan/error.hpp"

namespace zeroplan {

/// A number of bytes, exact. Arithmetic throws Error{overflow} instead of wrapping around.
/// 1 GB is 10^9 bytes and 1 GiB is 2^30 bytes; nothing here rounds one to the other.
class Bytes {
public:
    constexpr Bytes() = default;
    constexpr explicit Bytes(std::uint64_t count) : count_(count) {}
    constexpr std::uint64_t count() const { return count_; }
    constexpr double gib() const { return static_cast<double>(count_) / (1024.0 * 1024.0 * 1024.0); }
    constexpr double gb() const { return static_cast<double>(count_) / 1e9; }

    friend constexpr auto operator<=>(Bytes, Bytes) = default;
    friend constexpr Bytes operator+(Bytes a, Bytes b) {
        if (a.count_ > std::numeric_limits<std::uint64_t>::max() - b.count_) throw_overflow("sum of bytes");
        return Bytes{a.count_ + b.count_};
    }
    /// Throws if b > a: a negative size is a mistake of the caller.
    friend constexpr Bytes operator-(Bytes a, Bytes b) {
        if (b.count_ > a.count_) throw_overflow("difference of bytes");
        return Bytes{a.count_ - b.count_};
    }
    friend constexpr Bytes operator*(std::uint64_t n, Bytes b) {
        if (n != 0 && b.count_ > std::numeric_limits<std::uint64_t>::max() / n)
            throw_overflow("product of bytes");
        return Bytes{n * b.count_};
    }
    constexpr Bytes& operator+=(Bytes b) { return *this = *this + b; }
    constexpr Bytes& operator-=(Bytes b) { return *this = *this - b; }

private:
    std::uint64_t count_ = 0;
};

/// n · m elements; throws Error{overflow} naming `what` if the product exceeds 2^64 − 1.
constexpr std::uint64_t checked_product(std::uint64_t n, std::uint64_t m, const char* what = "elements") {
    if (n != 0 && m > std::numeric_limits<std::uint64_t>::max() / n) throw_overflow(what);
    return n * m;
}

/// a + b; throws Error{overflow} naming `what` if the sum exceeds 2^64 − 1.
constexpr std::uint64_t checked_sum(std::uint64_t a, std::uint64_t b, const char* what = "elements") {
    if (a > std::numeric_limits<std::uint64_t>::max() - b) throw_overflow(what);
    return a + b;
}

/// ⌈value / multiple⌉ · multiple, for multiple > 0.
constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
    const std::uint64_t rest = value % multiple;
    return rest == 0 ? value : checked_sum(value, multiple - rest);
}
constexpr Bytes round_up(Bytes value, Bytes multiple) {
    return Bytes{round_up(value.count(), multiple.count())};
}

/// "12.34 GiB", "5.00 MiB", "17 B": three to four significant digits in the largest unit that is not below 1.
std::string format_gib(Bytes bytes);
/// Both unit families: "79.11 GiB (84.94 GB)".
std::string format_bytes(Bytes bytes);
/// Every digit, grouped: "84,943,715,697 B".
std::string format_exact(Bytes bytes);
/// "1,234,567"
std::string format_count(std::uint64_t count);
/// "1.234 s", "12.3 ms", "4.56 µs"
std::string format_seconds(double seconds);

namespace literals {
constexpr Bytes operator""_B(unsigned long long v) {
    return Bytes{v};
}
constexpr Bytes operator""_KiB(unsigned long long v) {
    return v * Bytes{1ULL << 10};
}
constexpr Bytes operator""_MiB(unsigned long long v) {
    return v * Bytes{1ULL << 20};
}
constexpr Bytes operator""_GiB(unsigned long long v) {
    return v * Bytes{1ULL << 30};
}
constexpr Bytes operator""_GB(unsigned long long v) {
    return v * Bytes{1'000'000'000ULL};
}
}  // namespace literals

}  // namespace zeroplan
