#include "zeroplan/allocator.hpp"

#include <gtest/gtest.h>

namespace zeroplan {
namespace {

constexpr std::uint64_t mib = 1ULL << 20;

TEST(ArenaModel, TakesTheSmallestHoleThatFits) {
    ArenaModel arena;
    const auto a = arena.allocate(3 * mib), b = arena.allocate(mib), c = arena.allocate(2 * mib),
               d = arena.allocate(mib);
    EXPECT_EQ(d, 6 * mib);
    arena.free(a, 3 * mib);
    arena.free(c, 2 * mib);
    EXPECT_EQ(arena.allocate(2 * mib), c);
    EXPECT_EQ(arena.allocate(mib), a);
    EXPECT_EQ(b, 3 * mib);
    EXPECT_EQ(arena.reserved(), Bytes{8 * mib});  // 7 MiB in slabs of 2
}

TEST(ArenaModel, MergesNeighbouringHoles) {
    ArenaModel arena;
    const auto a = arena.allocate(mib), b = arena.allocate(mib), c = arena.allocate(mib),
               d = arena.allocate(mib);
    arena.free(a, mib);
    arena.free(c, mib);
    arena.free(b, mib);  // joins both sides
    EXPECT_EQ(arena.allocate(3 * mib), a);
    EXPECT_EQ(d, 3 * mib);
}

TEST(ArenaModel, GrowsAHoleAtTheEnd) {
    ArenaModel arena;
    arena.allocate(mib);
    const auto last = arena.allocate(mib);
    arena.free(last, mib);
    EXPECT_EQ(arena.allocate(2 * mib), last);
    EXPECT_EQ(arena.reserved(), Bytes{4 * mib});
}

TEST(ArenaModel, HolesThatDoNotFitAreReservedWithoutBeingLive) {
    StepProgram program;
    program.buffers = {{.dtype = DType::uint8, .elements = 2 * mib},
                       {.dtype = DType::uint8, .elements = 2 * mib},
                       {.dtype = DType::uint8, .elements = 4 * mib}};
    const Section section{
        "step", 1, {{Allocate{0}}, {Allocate{1}}, {Free{0}}, {Allocate{2}}, {Free{1}}, {Free{2}}}};
    const std::span<const Section> stage{&section, 1};
    const auto reserved = arena_reserved(program, {{stage}});
    EXPECT_EQ(reserved, std::vector<Bytes>{Bytes{8 * mib}});
}

}  // namespace
}  // namespace zeroplan
