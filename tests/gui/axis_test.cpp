#include "zeroplan/gui/axis.hpp"

#include <gmock/gmock.h>

namespace zeroplan::gui {
namespace {

std::vector<std::string> labels(const std::vector<Tick>& ticks) {
    std::vector<std::string> all;
    for (const Tick& tick : ticks) all.push_back(tick.label.toStdString());
    return all;
}

TEST(NiceStep, IsTheNext1_2_5) {
    EXPECT_DOUBLE_EQ(nice_step(1), 1);
    EXPECT_DOUBLE_EQ(nice_step(1.1), 2);
    EXPECT_DOUBLE_EQ(nice_step(30), 50);
    EXPECT_DOUBLE_EQ(nice_step(0.06), 0.1);
    EXPECT_DOUBLE_EQ(nice_step(0), 1);
    EXPECT_DOUBLE_EQ(nice_step(-3), 1);
}

TEST(ByteTicks, TakeTheLargestUnitBelowTheTop) {
    EXPECT_THAT(labels(byte_ticks(80.0 * 0x1p30, 4)),
                testing::ElementsAre("0 GiB", "20 GiB", "40 GiB", "60 GiB", "80 GiB"));
    EXPECT_THAT(labels(byte_ticks(1.5 * 0x1p20, 3)),
                testing::ElementsAre("0.0 MiB", "0.5 MiB", "1.0 MiB", "1.5 MiB"));
    EXPECT_THAT(labels(byte_ticks(3, 8)), testing::ElementsAre("0 B", "1 B", "2 B", "3 B"));
    EXPECT_TRUE(byte_ticks(0, 4).empty());
}

TEST(TimeTicks, TakeTheUnitOfTheWindow) {
    EXPECT_THAT(labels(time_ticks(0, 2, 4)),
                testing::ElementsAre("0.0 s", "0.5 s", "1.0 s", "1.5 s", "2.0 s"));
    EXPECT_THAT(labels(time_ticks(2.0, 2.002, 2)), testing::ElementsAre("2000 ms", "2001 ms", "2002 ms"));
    EXPECT_TRUE(time_ticks(1, 1, 4).empty());
}

TEST(CountTicks, AreWhole) {
    EXPECT_THAT(labels(count_ticks(0, 3, 10)), testing::ElementsAre("0", "1", "2", "3"));
    EXPECT_THAT(labels(count_ticks(0, 2500, 3)), testing::ElementsAre("0", "1,000", "2,000"));
}

}  // namespace
}  // namespace zeroplan::gui
