#include "zeroplan/runner/arena.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "errors.hpp"
#include "zeroplan/runner/process_memory.hpp"

namespace zeroplan::runner {
namespace {

using namespace zeroplan::literals;

TEST(Arena, CountsSizesRoundedUpTo512Bytes) {
    Arena arena;
    arena.allocate(1_B, Category::activations);
    arena.allocate(512_B, Category::activations);
    arena.allocate(513_B, Category::parameters);
    arena.allocate(0_B, Category::gradients);
    EXPECT_EQ(arena.live()[Category::activations], 1024_B);
    EXPECT_EQ(arena.live()[Category::parameters], 1024_B);
    EXPECT_EQ(arena.live()[Category::gradients], 0_B);
    EXPECT_EQ(arena.live().total(), 2048_B);
}

TEST(Arena, BreaksThePeakDownAtOneMoment) {
    Arena arena;
    void* a = arena.allocate(4096_B, Category::activations);
    arena.allocate(1024_B, Category::parameters);
    arena.release(a);
    arena.allocate(3072_B, Category::gradients);
    // Activations peaked at 4096 and gradients at 3072, but never together: 4096 + 1024 is the joint peak.
    EXPECT_EQ(arena.overall_peak().allocated, 5120_B);
    EXPECT_EQ(arena.overall_peak().at_peak[Category::activations], 4096_B);
    EXPECT_EQ(arena.overall_peak().at_peak[Category::parameters], 1024_B);
    EXPECT_EQ(arena.overall_peak().at_peak[Category::gradients], 0_B);
}

TEST(Arena, TakesTheFirstOfEqualPeaks) {
    Arena arena;
    void* a = arena.allocate(512_B, Category::activations);
    arena.release(a);
    arena.allocate(512_B, Category::gradients);
    EXPECT_EQ(arena.overall_peak().at_peak[Category::activations], 512_B);
}

TEST(Arena, MeasuresAWindowFromWhatIsLive) {
    Arena arena;
    void* a = arena.allocate(8192_B, Category::temporaries);
    arena.allocate(512_B, Category::parameters);
    arena.release(a);
    arena.start_window();
    EXPECT_EQ(arena.window_peak().allocated, 512_B);
    arena.allocate(1024_B, Category::activations);
    EXPECT_EQ(arena.window_peak().allocated, 1536_B);
    EXPECT_EQ(arena.overall_peak().allocated, 8704_B);
}

TEST(Arena, HandsOutZerosOrPoison) {
    Arena zeros, poisoned(Arena::Fill::poison);
    EXPECT_EQ(static_cast<float*>(zeros.allocate(64_B, Category::parameters))[15], 0.0F);
    EXPECT_TRUE(std::isnan(static_cast<float*>(poisoned.allocate(64_B, Category::parameters))[15]));
}

TEST(Arena, AlignsToPages) {
    Arena arena;
    for (int i = 0; i < 5; ++i)
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena.allocate(700_B, Category::activations)) % 4096, 0U);
}

TEST(Arena, RefusesToReleaseWhatIsNotLive) {
    Arena arena;
    void* a = arena.allocate(512_B, Category::activations);
    arena.release(a);
    EXPECT_THROW(arena.release(a), std::logic_error);
    EXPECT_THROW(arena.release(nullptr), std::logic_error);
}

TEST(Arena, SaysWhatTheSystemHasNotGot) {
    Arena arena;
    const Error error = error_of([&] { arena.allocate(Bytes{1ULL << 60}, Category::optimizer_states); });
    EXPECT_EQ(error.code(), ErrorCode::run_failed);
    EXPECT_NE(error.message().find("optimizer_states"), std::string::npos) << error.what();
}

TEST(Arena, MovesTheProcessesOwnMemory) {
    Arena arena;
    const Bytes before = process_memory().resident;
    void* a = arena.allocate(64_MiB, Category::activations);  // never written: present all the same
    const Bytes during = process_memory().resident;
    arena.release(a);
    const Bytes after = process_memory().resident;
    EXPECT_GE(during.count(), (before + 63_MiB).count());
    EXPECT_LE(after.count(), (before + 1_MiB).count());
}

TEST(ProcessMemory, ForgetsThePeakWhenReset) {
    {
        Arena arena;
        arena.allocate(64_MiB, Category::activations);
    }
    if (!reset_process_peak()) GTEST_SKIP() << "the kernel doesn't permit writing to /proc/self/clear_refs";
    const ProcessMemory memory = process_memory();
    EXPECT_LE(memory.peak.count(), (memory.resident + 1_MiB).count());
    EXPECT_GT(available_memory(), 0_B);
}

}  // namespace
}  // namespace zeroplan::runner
