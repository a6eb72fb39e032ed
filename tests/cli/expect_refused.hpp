#pragma once
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "cli/run_program.hpp"

namespace zeroplan::test {

/// "plan --model gpt2" and more.
inline std::vector<std::string> plan_of_gpt2(std::vector<std::string> more) {
    more.insert(more.begin(), {"plan", "--model", "gpt2"});
    return more;
}

/// Bad input: exit status 2, nothing on standard output, and an error that has all these parts.
inline void expect_refused(const std::vector<std::string>& arguments, const std::vector<std::string>& parts) {
    const Outcome outcome = zeroplan(arguments);
    EXPECT_EQ(outcome.status, 2) << testing::PrintToString(arguments);
    EXPECT_EQ(outcome.out, "");
    for (const std::string& part : parts) EXPECT_THAT(outcome.err, testing::HasSubstr(part));
}

}  // namespace zeroplan::test
