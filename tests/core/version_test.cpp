#include "zeroplan/version.hpp"

#include <gtest/gtest.h>

TEST(Version, HasThreeNumbers) {
    EXPECT_EQ(zeroplan::version(), "0.1.0");
}
