#include <cstdio>
#include <string>

#include <gmock/gmock.h>

namespace {

using testing::HasSubstr;

struct Ended {
    int status = -1;
    std::string output;
};

Ended run(const std::string& arguments) {
    Ended ended;
    FILE* pipe = popen((ZEROPLAN_BIN_DIR "/zeroplan " + arguments).c_str(), "r");
    if (pipe == nullptr) return ended;
    char buffer[4096];
    while (const std::size_t got = fread(buffer, 1, sizeof buffer, pipe)) ended.output.append(buffer, got);
    ended.status = pclose(pipe);
    return ended;
}

TEST(Demo, PlansTrainsAndCompares) {
    const Ended demo = run("demo");
    EXPECT_EQ(demo.status, 0);
    EXPECT_THAT(demo.output, HasSubstr("8,030,261,248 parameters"));
    EXPECT_THAT(demo.output, HasSubstr("tokens/s/GPU"));
    EXPECT_THAT(demo.output, HasSubstr("The four stages end with the same parameters, bit for bit."));
    EXPECT_THAT(demo.output, HasSubstr("Planned and measured are equal in all"));
    EXPECT_THAT(demo.output, HasSubstr("zeroplan gui"));
}

TEST(Demo, NamesTheCommandThatStartedIt) {
    setenv("ZEROPLAN_COMMAND", "./zeroplan", 1);
    EXPECT_THAT(run("demo").output, HasSubstr("  ./zeroplan gui"));
    unsetenv("ZEROPLAN_COMMAND");
}

}  // namespace
