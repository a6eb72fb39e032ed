#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include <gtest/gtest.h>
#include <sys/wait.h>

#include "cli/run_program.hpp"

// Every command that the README shows does what it says: it is run as it stands there.
namespace zeroplan::test {
namespace {

namespace fs = std::filesystem;

/// Lines of the README's code blocks that start with "zeroplan ".
std::vector<std::string> commands() {
    std::ifstream file(std::string(ZEROPLAN_SOURCE_DIR) + "/README.md");
    std::vector<std::string> found;
    std::string line;
    bool in_block = false;
    while (std::getline(file, line)) {
        if (line.starts_with("```")) in_block = !in_block;
        if (in_block && line.starts_with("zeroplan ")) found.push_back(line);
    }
    return found;
}

/// Whether the part that does the command's work is in this build.
bool is_built(const std::string& command) {
    std::istringstream words(command);
    std::string program, subcommand;
    words >> program >> subcommand;
    const std::string path = std::string(ZEROPLAN_BIN_DIR) + "/zeroplan-" + subcommand;
    const bool is_another_program = subcommand == "sim" || subcommand == "run" || subcommand == "gui";
    return !is_another_program || fs::exists(path);
}

TEST(Readme, ShowsCommandsThatRun) {
    const TemporaryFolder folder;
    fs::create_directory_symlink(std::string(ZEROPLAN_SOURCE_DIR) + "/docs", folder.path("docs"));
    const auto lines = commands();
    EXPECT_GE(lines.size(), 6U);
    bool all_built = true;
    for (const std::string& line : lines) {
        all_built = all_built && is_built(line);
        if (!all_built) continue;  // what follows may read what this would have written
        const std::string script = folder.file("script.sh", line + "\n");
        const std::string shell = "cd '" + folder.path("") +
                                  "' && PATH='" ZEROPLAN_BIN_DIR "':\"$PATH\" sh '" + script + "' >out 2>err";
        const int status = std::system(shell.c_str());
        std::ifstream errors(folder.path("err"));
        const std::string err{std::istreambuf_iterator<char>(errors), {}};
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << line << "\n" << err;
    }
}

}  // namespace
}  // namespace zeroplan::test
