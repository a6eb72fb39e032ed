// What becomes of results that can't be written: files named by flags, and standard output.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/run_program.hpp"

namespace zeroplan::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct Written {
    const char* name;
    std::vector<std::string> command;  ///< what the file's flag and path are put behind
    std::string program, flag, report;
};
void PrintTo(const Written& written, std::ostream* stream) {
    *stream << written.name;
}

Outcome run_with(const Written& written, const std::string& path) {
    std::vector<std::string> arguments = written.command;
    arguments.insert(arguments.end(), {written.flag, path});
    return run_program(written.program, arguments);
}

class WrittenFile : public testing::TestWithParam<Written> {
protected:
    void SetUp() override {
        if (!std::filesystem::exists(std::string(ZEROPLAN_BIN_DIR) + "/" + GetParam().program))
            GTEST_SKIP() << GetParam().program << " is not built";
    }
};

TEST_P(WrittenFile, LeavesTheReportToTheUserWhenTheDiskIsFull) {
    const Outcome outcome = run_with(GetParam(), "/dev/full");
    EXPECT_EQ(outcome.status, 3);
    EXPECT_THAT(outcome.out, HasSubstr(GetParam().report));
    EXPECT_THAT(outcome.err, StartsWith("zeroplan: error: /dev/full: cannot write: No space left on device"));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

TEST_P(WrittenFile, IsTriedBeforeTheWork) {
    const TemporaryFolder folder;
    const std::string file = folder.file("file", "");
    for (const std::string& path : {folder.path("missing/a"), file + "/a", folder.path("")}) {
        const Outcome outcome = run_with(GetParam(), path);
        EXPECT_EQ(outcome.status, 2) << path;
        EXPECT_EQ(outcome.out, "") << path;
        EXPECT_THAT(outcome.err, HasSubstr(path + ": cannot write")) << path;
    }
}

TEST_P(WrittenFile, IsAllThatIsLeftBehind) {
    const TemporaryFolder folder;
    EXPECT_EQ(run_with(GetParam(), folder.path("a")).status, 0);
    EXPECT_GT(std::filesystem::file_size(folder.path("a")), 0U);
    std::filesystem::remove(folder.path("a"));
    EXPECT_TRUE(std::filesystem::is_empty(folder.path("")));
}

const std::vector<std::string> gpt2{"--model", "gpt2"};
const std::vector<std::string> short_run{"--model", "tutorial-mlp", "--ranks", "2", "--set", "/run/steps=2"};

INSTANTIATE_TEST_SUITE_P(
    Of, WrittenFile,
    testing::Values(
        Written{"plan_csv", {"plan", "--model", "gpt2"}, "zeroplan", "--csv", "Peak of a steady step"},
        Written{
            "plan_snapshot", {"plan", "--model", "gpt2"}, "zeroplan", "--snapshot", "Peak of a steady step"},
        Written{"plan_scenario",
                {"plan", "--model", "gpt2"},
                "zeroplan",
                "--save-scenario",
                "Peak of a steady step"},
        Written{"sim_scenario", gpt2, "zeroplan-sim", "--save-scenario", "tokens/s"},
        Written{"sim_trace", gpt2, "zeroplan-sim", "--trace", "tokens/s"},
        Written{"sim_csv", gpt2, "zeroplan-sim", "--csv", "tokens/s"},
        Written{"run_trace", short_run, "zeroplan-run", "--trace", "Training completed successfully"}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(FileOfAnImport, LeavesTheReportToTheUserWhenTheDiskIsFull) {
    const TemporaryFolder folder;
    const std::string config = folder.file("ds.json", R"({"zero_optimization": {"stage": 2}})");
    const Outcome full = zeroplan({"import", config, "--output", "/dev/full"});
    EXPECT_EQ(full.status, 3);
    EXPECT_THAT(full.out, HasSubstr("zero_optimization"));
    EXPECT_THAT(full.err, StartsWith("zeroplan: error: /dev/full: cannot write"));
    EXPECT_EQ(zeroplan({"import", config, "--output", folder.path("missing/a")}).status, 2);
}

class StandardOutput : public testing::TestWithParam<std::vector<std::string>> {
protected:
    /// The descriptor is closed when the program has ended.
    static Outcome write_to(int descriptor) {
        std::vector<std::string> arguments = GetParam();
        const std::string program = arguments.front();
        arguments.erase(arguments.begin());
        Outcome outcome = run_program_into(descriptor, program, arguments);
        close(descriptor);
        return outcome;
    }
    /// The writing end of a pipe that nobody reads.
    static int abandoned_pipe() {
        int ends[2] = {-1, -1};
        EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
        close(ends[0]);
        return ends[1];
    }
    void SetUp() override {
        if (!std::filesystem::exists(std::string(ZEROPLAN_BIN_DIR) + "/" + GetParam().front()))
            GTEST_SKIP() << GetParam().front() << " is not built";
    }
};

TEST_P(StandardOutput, OnAFullDiskIsOneError) {
    const Outcome outcome = write_to(open("/dev/full", O_WRONLY | O_CLOEXEC));
    EXPECT_EQ(outcome.status, 3);
    EXPECT_EQ(outcome.err,
              "zeroplan: error: standard output: cannot write the result: No space left on device\n");
}

TEST_P(StandardOutput, WithoutAReaderEndsQuietly) {
    const auto before = signal(SIGPIPE, SIG_DFL);
    const Outcome outcome = write_to(abandoned_pipe());
    signal(SIGPIPE, SIG_IGN);  // what a program does that started us, Python's subprocess for one
    const Outcome ignored = write_to(abandoned_pipe());
    signal(SIGPIPE, before);
    for (const Outcome& one : {outcome, ignored}) {
        EXPECT_EQ(one.status, 128 + SIGPIPE);
        EXPECT_EQ(one.err, "");
    }
}

INSTANTIATE_TEST_SUITE_P(
    Of, StandardOutput,
    testing::Values(std::vector<std::string>{"zeroplan", "plan", "--model", "gpt2"},
                    std::vector<std::string>{"zeroplan", "list", "models"},
                    std::vector<std::string>{"zeroplan-sim", "--model", "gpt2", "--json"},
                    std::vector<std::string>{"zeroplan-run", "--model", "tutorial-mlp", "--ranks", "2",
                                             "--set", "/run/steps=2"},
                    std::vector<std::string>{"zeroplan-run", "--model", "tutorial-mlp", "--ranks", "2",
                                             "--set", "/run/steps=2", "--json"}));

TEST(FilesOfAReport, AreWrittenThoughStandardOutputIsFull) {
    const TemporaryFolder folder;
    const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    const Outcome outcome =
        run_program_into(full, "zeroplan", {"plan", "--model", "gpt2", "--csv", folder.path("a.csv")});
    close(full);
    EXPECT_EQ(outcome.status, 3);
    EXPECT_GT(std::filesystem::file_size(folder.path("a.csv")), 0U);
}

TEST(TwoResults, AreNotWrittenToOneFile) {
    const TemporaryFolder folder;
    const std::string path = folder.path("a"), same = folder.path("./a");
    for (const std::vector<std::string>& flags : {std::vector<std::string>{"--csv", path, "--snapshot", same},
                                                  {"--save-scenario", path, "--csv", path}}) {
        std::vector<std::string> arguments{"plan", "--model", "gpt2"};
        arguments.insert(arguments.end(), flags.begin(), flags.end());
        const Outcome outcome = zeroplan(arguments);
        EXPECT_EQ(outcome.status, 2);
        EXPECT_THAT(outcome.err, HasSubstr("two results are to be written to this file"));
        EXPECT_FALSE(std::filesystem::exists(path));
    }
    EXPECT_EQ(zeroplan({"plan", "--model", "gpt2", "--csv", "/dev/null", "--snapshot", "/dev/null"}).status,
              0);
}

TEST(TwoResults, AreNotWrittenToOneNewFileThatIsSpeltInTwoWays) {
    const TemporaryFolder folder;
    const std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::current_path(folder.path(""));
    for (const std::string& other : {std::string("./n"), folder.path("n"), std::string("a/../n")})
        for (const char* flag : {"--snapshot", "--save-scenario"}) {
            const Outcome outcome = zeroplan({"plan", "--model", "gpt2", flag, "n", "--csv", other});
            EXPECT_EQ(outcome.status, 2) << flag << " " << other;
            EXPECT_THAT(outcome.err, HasSubstr("two results are to be written to this file")) << other;
        }
    EXPECT_TRUE(std::filesystem::is_empty(folder.path("")));
    std::filesystem::current_path(before);
}

TEST(SavedScenario, IsNotLeftByACommandThatIsRefused) {
    const TemporaryFolder folder;
    const std::string saved = folder.path("s.json");
    EXPECT_EQ(zeroplan({"plan", "--model", "gpt2", "--engine", "deepspeed", "--zero", "3", "--pp", "2",
                        "--gpus", "4", "--save-scenario", saved})
                  .status,
              2);
    EXPECT_FALSE(std::filesystem::exists(saved));
    if (!std::filesystem::exists(std::string(ZEROPLAN_BIN_DIR) + "/zeroplan-sim"))
        GTEST_SKIP() << "zeroplan-sim is not built";
    EXPECT_EQ(zeroplan({"sim", "--model", "gpt2", "--chakra", folder.path("c"), "--straggler", "0=0.9",
                        "--save-scenario", saved})
                  .status,
              2);
    EXPECT_TRUE(std::filesystem::is_empty(folder.path("")));
}

TEST(FileSizeLimit, IsAnErrorOfWritingAndLeavesNothing) {
    const TemporaryFolder folder;
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    const rlimit tight{64 * 1024, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
    const Outcome outcome = zeroplan({"plan", "--model", "gpt2", "--snapshot", folder.path("s.pickle")});
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_EQ(outcome.status, 3);
    EXPECT_THAT(outcome.err, HasSubstr("s.pickle: cannot write: File too large"));
    EXPECT_TRUE(std::filesystem::is_empty(folder.path("")));
}

}  // namespace
}  // namespace zeroplan::test
