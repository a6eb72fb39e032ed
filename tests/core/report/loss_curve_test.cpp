#include "report/loss_curve.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace zeroplan {
namespace {

TEST(LossCurve, FallsFromTheHighestToTheLowest) {
    const std::vector<double> losses{4, 3, 2, 1};
    const auto lines = loss_curve(losses, 40, 3);
    // Few values are six columns wide.
    EXPECT_EQ(lines, (std::vector<std::string>{"         4 ┤██████", "           │████████████",
                                               "         1 ┤██████████████████▁▁▁▁▁▁"}));
}

TEST(LossCurve, AveragesStepsThatShareAColumn) {
    std::vector<double> losses(1000, 2.0);
    losses[0] = 1000;
    const auto lines = loss_curve(losses, 32, 2);
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[0], "     21.96 ┤█");  // mean of 50 steps, one of them 1000
}

TEST(LossCurve, IsEmptyWhereNothingCanBeDrawn) {
    EXPECT_TRUE(loss_curve({}, 80).empty());
    EXPECT_TRUE(loss_curve(std::vector<double>{1}, 80).empty());
    EXPECT_TRUE(loss_curve(std::vector<double>{1, std::nan("")}, 80).empty());
    EXPECT_TRUE(loss_curve(std::vector<double>{1, 2}, 10).empty());
    EXPECT_EQ(loss_curve(std::vector<double>{1, 1}, 80).size(), 8U);
}

}  // namespace
}  // namespace zeroplan
