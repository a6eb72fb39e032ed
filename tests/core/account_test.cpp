#include "account.hpp"

#include <gtest/gtest.h>

namespace zeroplan {
namespace {

constexpr std::uint64_t mib = 1ULL << 20;

/// Loads buffers of `sizes` bytes by the steps given: an Allocate or a Free a step.
StepProgram loading(const std::vector<std::uint64_t>& sizes, const std::vector<OperationBody>& steps) {
    StepProgram program;
    for (const std::uint64_t size : sizes)
        program.buffers.push_back({BufferRole::activation, Category::activations, DType::uint8, 0, 0, size});
    program.load = {"load", 1, {}};
    for (const OperationBody& step : steps) program.load.operations.push_back({step, Stream::compute, {}});
    program.init = {"init", 1, {}};
    program.save = {"save", 1, {}};
    return program;
}

// 60 MiB are cached when 80 MiB are asked for: 140 MiB reserved on a large device, 80 MiB on one of 100 MiB.
TEST(ReservedWithin, GivesFreeSegmentsBack) {
    const StepProgram program = loading({60 * mib, 80 * mib}, {Allocate{0}, Free{0}, Allocate{1}, Free{1}});
    EXPECT_EQ(reserved_within(program, Bytes{200 * mib}), Bytes{140 * mib});
    EXPECT_EQ(reserved_within(program, Bytes{100 * mib}), Bytes{80 * mib});
}

// 20 of the 40 MiB segment are in use again when 30 MiB are asked for: the segment stays, and the 50 MiB that
// are allocated don't fit into 60.
TEST(ReservedWithin, KeepsSegmentsThatAreInUse) {
    const StepProgram program =
        loading({40 * mib, 20 * mib, 30 * mib}, {Allocate{0}, Free{0}, Allocate{1}, Allocate{2}});
    EXPECT_EQ(reserved_within(program, Bytes{60 * mib}), Bytes{70 * mib});
}

// An expandable segment grows from the 60 MiB that are free to 80 instead of leaving a hole beside them.
TEST(ReservedWithin, GrowsExpandableSegments) {
    const StepProgram program = loading({60 * mib, 80 * mib}, {Allocate{0}, Free{0}, Allocate{1}, Free{1}});
    EXPECT_EQ(reserved_within(program, Bytes{200 * mib}, {.expandable_segments = true}), Bytes{80 * mib});
}

TEST(Account, ReservesByTheAllocatorsOptions) {
    const StepProgram program = loading({60 * mib, 80 * mib}, {Allocate{0}, Free{0}, Allocate{1}, Free{1}});
    const auto reserved = [&](const CachingAllocatorOptions& options) {
        return account(program, 0, {{0, 0}}, AllocatorKind::caching, options, {}).peak_reserved;
    };
    EXPECT_EQ(reserved({}), Bytes{140 * mib});
    EXPECT_EQ(reserved({.expandable_segments = true}), Bytes{80 * mib});
}

// What doesn't fit is reserved all the same, and free segments go back whenever there is more of it.
TEST(ReservedWithin, SaysHowMuchIsNeededWhereItDoesNotFit) {
    const StepProgram program =
        loading({60 * mib, 50 * mib, 70 * mib}, {Allocate{0}, Allocate{1}, Free{1}, Allocate{2}});
    EXPECT_EQ(reserved_within(program, Bytes{100 * mib}), Bytes{130 * mib});
}

}  // namespace
}  // namespace zeroplan
