#include "cost/nccl_channels.hpp"

#include <gtest/gtest.h>

namespace zeroplan::nccl {
namespace {

constexpr GroupPlacement one_node{.ranks = 8, .nodes = 1, .ranks_per_node = 8, .rails = 8};

Channels on_links_of(double gb_per_s, Generation gpu) {
    return find_channels(one_node, gpu, {.intra_node_bytes_per_s = gb_per_s * 1e9}, {8, 0});
}

// 230 GB/s carry 5 channels of 40, 7 of 30, 11 of 20, 12 of 18 and 15 of 15 GB/s: the last are the most.
TEST(NcclChannels, AreTheMostThatTheLinkCarries) {
    const Channels found = on_links_of(230, Generation::ampere);
    EXPECT_EQ(found.count, 15);
    EXPECT_EQ(found.gb_per_s, 15);
}

// 360 GB/s carry 6 channels of 60 GB/s on Hopper, which become 12 of 30.
TEST(NcclChannels, AreDoubledWhereTheyAreFast) {
    const Channels found = on_links_of(360, Generation::hopper);
    EXPECT_EQ(found.count, 12);
    EXPECT_EQ(found.gb_per_s, 30);
}

TEST(NcclChannels, RunAtTheLinksSpeedBelowEveryStep) {
    const Channels found = on_links_of(2, Generation::ampere);
    EXPECT_EQ(found.count, 1);
    EXPECT_EQ(found.gb_per_s, 2);
}

// NICs of 100 Gb/s carry a channel of 12 GB/s each, a share of half of one only 6.
TEST(NcclChannels, AreThoseOfTheNicsThatThereAre) {
    const GroupPlacement two{.ranks = 16, .nodes = 2, .ranks_per_node = 8, .rails = 8};
    const LinkRates rates{.intra_node_bytes_per_s = 240e9, .nic_bytes_per_s = 6.25e9};
    const Channels of_four = find_channels(two, Generation::ampere, rates, {4, 12.5});
    EXPECT_EQ(of_four.count, 4);
    EXPECT_EQ(of_four.gb_per_s, 12);
    EXPECT_EQ(find_channels(two, Generation::ampere, rates, {8, 6.25}).count, 8);
}

// 119.5 GB/s: one channel of 60, two of 50; four of 24 would be fewer bytes, and slower ones, which would be
// more, are less than half of 50.
TEST(NcclChannels, AreNotLookedForBelowHalfOfTheSpeedFound) {
    const Channels found = on_links_of(119.5, Generation::hopper);
    EXPECT_EQ(found.count * found.gb_per_s, 100);
}

// What is measured on a bridge is no link that channels have to fit.
TEST(NcclChannels, TakeAllOfABridge) {
    const GroupPlacement pair{.ranks = 2, .nodes = 1, .ranks_per_node = 2, .rails = 2, .bridged = true};
    const Channels found =
        find_channels(pair, Generation::hopper, {.intra_node_bytes_per_s = 119.5e9}, {2, 0});
    EXPECT_DOUBLE_EQ(found.bus_gb_per_s(), 119.5);
}

}  // namespace
}  // namespace zeroplan::nccl
