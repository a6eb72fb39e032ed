#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "fuzz/targets.hpp"

namespace zeroplan::fuzz {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class Corpus : public testing::TestWithParam<Target> {};

/// Every input that a fuzzer found worth keeping either reads or is refused with an Error: run() lets nothing
/// else out.
TEST_P(Corpus, IsReadOrRefused) {
    const fs::path folder = fs::path(ZEROPLAN_TEST_DATA) / "fuzz/corpus" / GetParam().name;
    std::size_t inputs = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
        SCOPED_TRACE(entry.path().string());
        EXPECT_NO_THROW(GetParam().run(bytes_of(entry.path())));
        ++inputs;
    }
    EXPECT_GT(inputs, 0U) << folder;
}

/// Each input cut off at every length up to its first few hundred bytes: what a broken copy looks like.
TEST_P(Corpus, IsReadOrRefusedWhenCutOff) {
    const fs::path folder = fs::path(ZEROPLAN_TEST_DATA) / "fuzz/corpus" / GetParam().name;
    constexpr std::size_t longest = 256;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
        const std::string whole = bytes_of(entry.path());
        for (std::size_t length = 0; length < std::min(whole.size(), longest); ++length)
            ASSERT_NO_THROW(GetParam().run(std::string_view(whole).substr(0, length)))
                << entry.path() << " at " << length;
    }
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Corpus, testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace zeroplan::fuzz
