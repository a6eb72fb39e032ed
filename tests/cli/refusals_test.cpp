#include "cli/expect_refused.hpp"

namespace zeroplan::test {
namespace {

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
