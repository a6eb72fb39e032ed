// The files of `sim --chakra`: of use only together, so all are written or none.
#include <sys/resource.h>

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/run_program.hpp"

namespace zeroplan::test {
namespace {

using testing::HasSubstr;

class ChakraFiles : public testing::Test {
protected:
    void SetUp() override {
        if (!std::filesystem::exists(std::filesystem::path(ZEROPLAN_BIN_DIR) / "zeroplan-sim"))
            GTEST_SKIP() << "built without SimGrid";
    }
    /// GPT-2 on four GPUs.
    static Outcome sim(const std::vector<std::string>& more) {
        std::vector<std::string> arguments{"sim", "--model", "gpt2", "--topology", "dgx-h100", "--gpus",
                                           "4",   "--zero",  "3",    "--seq",      "512",      "--quiet"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return zeroplan(arguments);
    }
    TemporaryFolder folder_;
};

TEST_F(ChakraFiles, AreOneARankAndThatOfTheCommunicators) {
    const Outcome outcome = sim({"--chakra", folder_.path("c")});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    for (const char* name : {"c.0.et", "c.1.et", "c.2.et", "c.3.et", "c.communicators.json"})
        EXPECT_TRUE(std::filesystem::remove(folder_.path(name))) << name;
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path("")));
}

TEST_F(ChakraFiles, KeepTheModeOfWhatTheyReplace) {
    namespace fs = std::filesystem;
    const fs::perms secret = fs::perms::owner_read | fs::perms::owner_write;
    folder_.file("m.1.et", "old");
    fs::permissions(folder_.path("m.1.et"), secret);
    ASSERT_EQ(sim({"--chakra", folder_.path("m")}).status, 0);
    EXPECT_GT(fs::file_size(folder_.path("m.1.et")), 3U);
    EXPECT_EQ(fs::status(folder_.path("m.1.et")).permissions(), secret);
    EXPECT_NE(fs::status(folder_.path("m.2.et")).permissions(), secret);  // new: as the umask has it
}

TEST_F(ChakraFiles, TakeNoOtherResultsPlace) {
    const Outcome outcome = sim({"--chakra", folder_.path("c"), "--trace", folder_.path("c.3.et")});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_THAT(outcome.err, HasSubstr("c.3.et: two results are to be written to this file"));
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path("")));
}

TEST_F(ChakraFiles, AreTriedBeforeTheWork) {
    std::filesystem::create_directory(folder_.path("d.2.et"));
    const Outcome outcome = sim({"--chakra", folder_.path("d")});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_THAT(outcome.err, HasSubstr("d.2.et: cannot write: Is a directory"));
    EXPECT_FALSE(std::filesystem::exists(folder_.path("d.0.et")));
}

TEST_F(ChakraFiles, LeaveNothingAndWhatWasThereWhereOneCannotBeWritten) {
    // Larger than what any file may be; the last rank's is as large as the first's, so limit just below.
    ASSERT_EQ(sim({"--chakra", folder_.path("x")}).status, 0);
    const auto size = std::filesystem::file_size(folder_.path("x.3.et"));
    for (int rank = 1; rank < 4; ++rank)
        std::filesystem::remove(folder_.path("x." + std::to_string(rank) + ".et"));
    std::filesystem::remove(folder_.path("x.communicators.json"));
    folder_.file("x.0.et", "old");
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    const rlimit tight{size - 1, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
    const Outcome outcome = sim({"--chakra", folder_.path("x")});
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_EQ(outcome.status, 3);
    EXPECT_THAT(outcome.err, HasSubstr(".et: cannot write: File too large"));
    EXPECT_EQ(std::filesystem::file_size(folder_.path("x.0.et")), 3U);
    std::filesystem::remove(folder_.path("x.0.et"));
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path("")));
}

}  // namespace
}  // namespace zeroplan::test
