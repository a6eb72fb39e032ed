#include "zeroplan/runner/host_communicator.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "convert.hpp"
#include "ranks.hpp"

namespace zeroplan::runner {
namespace {

using Floats = std::vector<float>;

/// What member `rank` contributes at position i: sums of these round differently in another order.
float value_of(int rank, std::size_t i) {
    return static_cast<float>((i * 2654435761U + static_cast<std::size_t>(rank) * 40503U) % 100003U) * 1e-3F -
           40.0F;
}

/// A buffer of stored elements.
struct Stored {
    DType dtype;
    std::vector<std::byte> bytes;
    Stored(DType type, std::size_t n) : dtype(type), bytes(n * bytes_per_element(type)) {}
    Stored(DType type, const Floats& values) : Stored(type, values.size()) {
        narrow(values.data(), bytes.data(), dtype, values.size());
    }
    std::byte* at(std::size_t i) { return element(bytes.data(), dtype, i); }
    Floats widened() const {
        Floats result(bytes.size() / bytes_per_element(dtype));
        widen(bytes.data(), dtype, result.data(), result.size());
        return result;
    }
};

Floats contribution(int rank, std::size_t n) {
    Floats values(n);
    for (std::size_t i = 0; i < n; ++i) values[i] = value_of(rank, i);
    return values;
}

/// The sum over the ranks in fp32, in rank order, of stored contributions, rounded once.
Floats sequential_sum(int size, std::size_t n, DType dtype) {
    Floats sum = Stored(dtype, contribution(0, n)).widened();
    for (int rank = 1; rank < size; ++rank) {
        const Floats next = Stored(dtype, contribution(rank, n)).widened();
        for (std::size_t i = 0; i < n; ++i) sum[i] += next[i];
    }
    return Stored(dtype, sum).widened();
}

Floats slice(const Floats& all, std::size_t begin, std::size_t n) {
    return {all.begin() + static_cast<std::ptrdiff_t>(begin),
            all.begin() + static_cast<std::ptrdiff_t>(begin + n)};
}

struct Case {
    int ranks;
    std::size_t elements;
    DType dtype;
};
std::string name_of(const testing::TestParamInfo<Case>& info) {
    return std::to_string(info.param.ranks) + "_ranks_" + std::to_string(info.param.elements) + "_" +
           std::string(to_string(info.param.dtype));
}

class Collective : public testing::TestWithParam<Case> {
protected:
    int ranks() const { return GetParam().ranks; }
    std::size_t n() const { return GetParam().elements; }
    DType dtype() const { return GetParam().dtype; }
    std::size_t all() const { return n() * static_cast<std::size_t>(ranks()); }
    std::vector<int> everybody() const {
        std::vector<int> members(static_cast<std::size_t>(ranks()));
        std::iota(members.begin(), members.end(), 0);
        return members;
    }
};

TEST_P(Collective, ReduceScatterEqualsTheSequentialSum) {
    const Floats expected = sequential_sum(ranks(), all(), dtype());
    run_ranks(ranks(), [&](HostWorld& world) {
        HostCommunicator communicator(world, everybody(), "test");
        const auto rank = static_cast<std::size_t>(world.rank());
        Stored send(dtype(), contribution(world.rank(), all())), receive(dtype(), n());
        communicator.reduce_scatter(send.at(0), receive.at(0), n(), dtype());
        EXPECT_EQ(receive.widened(), slice(expected, rank * n(), n()));
        communicator.reduce_scatter(send.at(0), send.at(rank * n()), n(), dtype());  // in place
        EXPECT_EQ(slice(send.widened(), rank * n(), n()), slice(expected, rank * n(), n()));
    });
}

TEST_P(Collective, AllReduceEqualsTheSequentialSum) {
    const Floats expected = sequential_sum(ranks(), n(), dtype());
    run_ranks(ranks(), [&](HostWorld& world) {
        HostCommunicator communicator(world, everybody(), "test");
        Stored buffer(dtype(), contribution(world.rank(), n()));
        communicator.all_reduce(buffer.at(0), n(), dtype());
        EXPECT_EQ(buffer.widened(), expected);
    });
}

TEST_P(Collective, AllGatherPutsTheRanksInOrder) {
    Floats expected;
    for (int rank = 0; rank < ranks(); ++rank) {
        const Floats part = Stored(dtype(), contribution(rank, n())).widened();
        expected.insert(expected.end(), part.begin(), part.end());
    }
    run_ranks(ranks(), [&](HostWorld& world) {
        HostCommunicator communicator(world, everybody(), "test");
        const auto rank = static_cast<std::size_t>(world.rank());
        Stored send(dtype(), contribution(world.rank(), n())), receive(dtype(), all());
        communicator.all_gather(send.at(0), receive.at(0), n(), dtype());
        EXPECT_EQ(receive.widened(), expected);
        Stored in_place(dtype(), all());
        std::copy(send.bytes.begin(), send.bytes.end(), in_place.at(rank * n()));
        communicator.all_gather(in_place.at(rank * n()), in_place.at(0), n(), dtype());
        EXPECT_EQ(in_place.widened(), expected);
    });
}

TEST_P(Collective, BroadcastCopiesTheRoot) {
    run_ranks(ranks(), [&](HostWorld& world) {
        HostCommunicator communicator(world, everybody(), "test");
        for (int root = 0; root < ranks(); ++root) {
            Stored buffer(dtype(), contribution(world.rank(), n()));
            communicator.broadcast(buffer.at(0), n(), dtype(), root);
            EXPECT_EQ(buffer.widened(), Stored(dtype(), contribution(root, n())).widened());
        }
    });
}

INSTANTIATE_TEST_SUITE_P(Sizes, Collective,
                         testing::Values(Case{1, 1001, DType::fp32}, Case{2, 1, DType::fp32},
                                         Case{2, 200'001, DType::fp32}, Case{3, 100'003, DType::bf16},
                                         Case{4, 7, DType::bf16}, Case{4, 65'536, DType::fp32},
                                         Case{5, 40'009, DType::fp16}, Case{8, 20'011, DType::fp32},
                                         Case{8, 3, DType::bf16}, Case{2, 0, DType::fp32}),
                         name_of);

TEST(HostCommunicator, RoundsBf16SumsOnce) {
    // 1 + 3 · 2^-8: rounding after every addition would lose each 2^-8 (half the spacing of bf16 at 1) to the
    // even 1.
    run_ranks(4, [](HostWorld& world) {
        HostCommunicator communicator(world, {0, 1, 2, 3}, "test");
        Stored buffer(DType::bf16, Floats{world.rank() == 0 ? 1.0F : 0x1p-8F});
        communicator.all_reduce(buffer.at(0), 1, DType::bf16);
        EXPECT_EQ(buffer.widened()[0], 1.0F + 0x1p-6F);  // 1.01171875 lies nearest to 1.015625
    });
}

TEST(HostCommunicator, RunsGroupsOfTheWorldSideBySide) {
    run_ranks(4, [](HostWorld& world) {
        const bool low = world.rank() < 2;
        HostCommunicator halves(world, low ? std::vector{0, 1} : std::vector{2, 3}, low ? "low" : "high");
        HostCommunicator whole(world, {0, 1, 2, 3}, "whole");
        EXPECT_EQ(halves.rank(), world.rank() % 2);
        float mine = static_cast<float>(1 << world.rank()), all = mine;
        halves.all_reduce(&mine, 1, DType::fp32);
        whole.all_reduce(&all, 1, DType::fp32);
        EXPECT_EQ(mine, low ? 3.0F : 12.0F);
        EXPECT_EQ(all, 15.0F);
    });
}

TEST(HostCommunicator, HoldsEverybodyAtABarrier) {
    std::atomic<int> arrived{0};
    run_ranks(4, [&](HostWorld& world) {
        HostCommunicator communicator(world, {0, 1, 2, 3}, "test");
        for (int round = 1; round <= 50; ++round) {
            ++arrived;
            communicator.barrier();
            EXPECT_GE(arrived.load(), 4 * round);
            communicator.barrier();
        }
    });
}

TEST(HostCommunicator, WorksWith64RanksOnFewCores) {
    std::vector<int> members(64);
    std::iota(members.begin(), members.end(), 0);
    const Floats expected = sequential_sum(64, 64 * 300, DType::fp32);
    run_ranks(64, [&](HostWorld& world) {
        HostCommunicator communicator(world, members, "test");
        Stored buffer(DType::fp32, contribution(world.rank(), 64 * 300));
        const auto own = static_cast<std::size_t>(world.rank()) * 300;
        communicator.reduce_scatter(buffer.at(0), buffer.at(own), 300, DType::fp32);
        communicator.all_gather(buffer.at(own), buffer.at(0), 300, DType::fp32);
        EXPECT_EQ(buffer.widened(), expected);
    });
}

}  // namespace
}  // namespace zeroplan::runner
