#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "cli/run_program.hpp"

// docs/what-if.md shows what its commands print: each is run and has to print that.
namespace zeroplan::test {
namespace {

namespace fs = std::filesystem;

std::string content_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// A block of the page: "$ zeroplan …", then what it prints; "…" stands for lines left out.
struct Example {
    std::string command;
    std::vector<std::vector<std::string>> parts;  ///< lines between those left out
};

std::vector<Example> examples() {
    std::ifstream file(std::string(ZEROPLAN_SOURCE_DIR) + "/docs/what-if.md");
    std::vector<Example> found;
    bool in_block = false;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("```")) {
            in_block = line == "```console";
        } else if (in_block && line.starts_with("$ ")) {
            found.push_back({line.substr(2), {{}}});
        } else if (in_block && line == "…") {
            found.back().parts.emplace_back();
        } else if (in_block) {
            found.back().parts.back().push_back(line);
        }
    }
    return found;
}

std::string joined(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
}

TEST(WhatIfDocs, ShowWhatTheCommandsPrint) {
    if (!fs::exists(std::string(ZEROPLAN_BIN_DIR) + "/zeroplan-sim")) GTEST_SKIP() << "built without SimGrid";
    const TemporaryFolder folder;
    const std::vector<Example> all = examples();
    EXPECT_GE(all.size(), 2U);
    for (const Example& example : all) {
        SCOPED_TRACE(example.command);
        const std::string script = folder.file("script.sh", example.command + "\n");
        const std::string shell = "cd '" + std::string(ZEROPLAN_SOURCE_DIR) +
                                  "' && PATH='" ZEROPLAN_BIN_DIR "':\"$PATH\" sh '" + script + "' >'" +
                                  folder.path("out") + "' 2>&1";
        const int status = std::system(shell.c_str());
        const std::string out = content_of(folder.path("out"));
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << out;
        std::size_t from = 0;
        for (const auto& part : example.parts) {
            const std::size_t at = out.find(joined(part), from);
            ASSERT_NE(at, std::string::npos) << "not printed:\n" << joined(part) << "but:\n" << out;
            from = at + joined(part).size();
        }
    }
}

}  // namespace
}  // namespace zeroplan::test
