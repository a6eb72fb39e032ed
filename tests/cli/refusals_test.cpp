#include "cli/expect_refused.hpp"

namespace zeroplan::test {
namespace {

TEST(EmptyValues, AreRefusedForEveryFlag) {
    for (const char* flag : {"--scenario", "--topology", "--gpu", "--csv", "--snapshot", "--save-scenario",
                             "--deepspeed", "--accelerate", "--against", "--set", "--engine", "--seq"})
        expect_refused(plan_of_gpt2({flag, ""}),
                       {"command line: " + std::string(flag) + ": ", "empty value"});
    expect_refused({"plan", "--model", ""}, {"--model: ", "empty value"});
    expect_refused({"import", ""}, {"FILE: ", "empty value"});
    expect_refused({"compare", "", "b.json"}, {"empty value"});
    EXPECT_EQ(zeroplan(plan_of_gpt2({"--compare-stages"})).status, 0);  // its value may be left out
    EXPECT_EQ(zeroplan(plan_of_gpt2({"--csv", "/dev/null"})).status, 0);
}

// The figures of one plan, whatever of them is shown.
TEST(LargestSizes, EndWithOneStatusInEveryForm) {
    for (const std::vector<std::string>& form : {std::vector<std::string>{}, {"--json"}, {"--quiet"}}) {
        std::vector<std::string> arguments = plan_of_gpt2({"--micro-batch", "1000000007"});
        arguments.insert(arguments.end(), form.begin(), form.end());
        EXPECT_EQ(zeroplan(arguments).status, 1) << testing::PrintToString(form);
    }
}

}  // namespace
}  // namespace zeroplan::test
