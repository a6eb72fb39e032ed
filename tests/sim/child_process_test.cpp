#include "child_process.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "zeroplan/error.hpp"

namespace zeroplan::sim {
namespace {

Error error_of(const std::function<void()>& body) {
    try {
        run_in_child(body, {});
    } catch (const Error& error) {
        return error;
    }
    return {ErrorCode::io, "no error"};
}

TEST(RunInChild, SharesMemoryWithIt) {
    const SharedMemory memory(sizeof(int));
    auto* value = static_cast<int*>(memory.data());
    run_in_child([value] { *value = 42; }, {});
    EXPECT_EQ(*value, 42);
}

TEST(RunInChild, TellsWhichSignalEndedItAndItsLastWords) {
    const Error error = error_of([] {
        std::fputs("[0.5] something impossible happened\n\n", stderr);
        std::signal(SIGABRT, SIG_DFL);
        std::abort();
    });
    EXPECT_EQ(error.code(), ErrorCode::run_failed);
    EXPECT_EQ(error.exit_status(), 3);
    EXPECT_NE(error.message().find("signal 6"), std::string::npos) << error.what();
    EXPECT_NE(error.message().find("[0.5] something impossible happened"), std::string::npos) << error.what();
}

TEST(RunInChild, PassesOnWhatItThrew) {
    const Error error = error_of([] { throw std::runtime_error("the links are gone"); });
    EXPECT_NE(error.message().find("the links are gone"), std::string::npos) << error.what();
}

TEST(RunInChild, SaysSoIfItEndedWithoutAWord) {
    const Error error = error_of([] { std::_Exit(4); });
    EXPECT_NE(error.message().find("status 4, without a word"), std::string::npos) << error.what();
    EXPECT_NE(error.hint().find("mistake of the program"), std::string::npos) << error.hint();
}

TEST(RunInChild, IsNoMistakeOfTheProgramIfItWasKilled) {
    const Error killed = error_of([] { std::raise(SIGKILL); });
    EXPECT_EQ(killed.exit_status(), 3);
    EXPECT_EQ(killed.message(), "the simulation was killed by signal 9 (Killed)");
    EXPECT_NE(killed.hint().find("memory"), std::string::npos) << killed.hint();
    const Error terminated = error_of([] { std::raise(SIGTERM); });
    EXPECT_EQ(terminated.message(), "the simulation was killed by signal 15 (Terminated)");
    EXPECT_EQ(terminated.hint().find("mistake"), std::string::npos) << terminated.hint();
}

TEST(RunInChild, TakesMuchOutput) {
    const Error error = error_of([] {
        for (int i = 0; i < 100'000; ++i) std::fputs("noise on a line of its own\n", stderr);
        throw std::runtime_error("the end");
    });
    EXPECT_NE(error.message().find("the end"), std::string::npos) << error.what();
}

}  // namespace
}  // namespace zeroplan::sim
