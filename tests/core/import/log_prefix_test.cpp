#include "import/log_prefix.hpp"

#include <gtest/gtest.h>

namespace zeroplan {
namespace {

TEST(LogPrefix, TakesOffWhatLaunchersPutBefore) {
    EXPECT_EQ(without_log_prefix("[rank0]: CUDA out"), "CUDA out");
    EXPECT_EQ(without_log_prefix("[default7]:CUDA out"), "CUDA out");
    EXPECT_EQ(without_log_prefix("[1,0]<stdout>:# size"), "# size");
    EXPECT_EQ(without_log_prefix(" 12: [rank12]: CUDA out "), "CUDA out");
    EXPECT_EQ(without_log_prefix("Nov  2 22:41:17 node-3 python[4242]: CUDA out"), "CUDA out");
}

TEST(LogPrefix, TakesOffDeepSpeedsHeader) {
    EXPECT_EQ(without_log_prefix("[2023-11-02 22:41:17,142] [INFO] [utils.py:803:see_memory_usage] MA 1 GB"),
              "MA 1 GB");
}

TEST(LogPrefix, LeavesAProgramsOwnWords) {
    for (const char* line : {"", "MA 15.1 GB", "8 2 float none", "12:30 noon", "12", "[open", "Nov 2 [x]: 3",
                             "Now 02 22:41:17 node python[1]: x"})
        EXPECT_EQ(without_log_prefix(line), line);
    EXPECT_EQ(without_log_prefix("[all]"), "");
}

}  // namespace
}  // namespace zeroplan
