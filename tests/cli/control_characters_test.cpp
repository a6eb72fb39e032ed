#include "cli/expect_refused.hpp"

namespace zeroplan::test {
namespace {

using testing::HasSubstr;

// A model's folder has any name, and a message or a table must not paint with it.
TEST(ControlCharacters, AreEscaped) {
    const TemporaryFolder folder;
    expect_refused({"plan", "--model", "a\033[31mb\nc\xc2\x9b"}, {R"("a\x1b[31mb\nc\x9b")"});
    const std::string config = folder.file("ev\033[31mil–é.json", R"({"model_type": "gpt2"})");
    const Outcome outcome = zeroplan({"plan", "--model", config});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr(R"(model     ev\x1b[31mil–é, 124,439,808 parameters)"));
    EXPECT_THAT(outcome.out, testing::Not(HasSubstr("\033")));
    for (const char* text : {R"(/training/loss="\u001b[2J")", "/training/\033[2J=1"})
        EXPECT_THAT(zeroplan(plan_of_gpt2({"--set", text})).err, testing::Not(HasSubstr("\033")));
}

}  // namespace
}  // namespace zeroplan::test
