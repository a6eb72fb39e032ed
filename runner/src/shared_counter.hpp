#pragma once
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdint>

namespace zeroplan::runner {

/// A counter in shared memory that one rank advances and others wait for; wraps around at 2^32. Zeroed memory
/// is a counter at 0. On a cache line of its own.
struct alignas(64) SharedCounter {
    std::atomic<std::uint32_t> value, waiters;

    bool has_reached(std::uint32_t target) const {
        return static_cast<std::int32_t>(value.load(std::memory_order_acquire) - target) >= 0;
    }

    /// Publishes everything written before.
    void advance_to(std::uint32_t target) {
        value.store(target);  // sequentially consistent: ordered before the look at the waiters
        if (waiters.load() != 0) syscall(SYS_futex, &value, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    }

    /// Sleeps until the counter has moved or `patience` has passed; false if it has passed.
    bool sleep(std::uint32_t target, std::chrono::milliseconds patience) {
        waiters.fetch_add(1);
        const std::uint32_t seen = value.load();
        bool in_time = true;
        if (static_cast<std::int32_t>(seen - target) < 0) {
            const timespec limit{static_cast<time_t>(patience.count() / 1000),
                                 static_cast<long>(patience.count() % 1000) * 1'000'000};
            in_time =
                syscall(SYS_futex, &value, FUTEX_WAIT, seen, &limit, nullptr, 0) == 0 || errno != ETIMEDOUT;
        }
        waiters.fetch_sub(1);
        return in_time;
    }
};
static_assert(sizeof(SharedCounter) == 64);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "lock-free atomics work between processes");

/// Hint to the processor that this is a spin loop.
inline void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace zeroplan::runner
