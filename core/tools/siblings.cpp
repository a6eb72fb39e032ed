#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "subcommand.hpp"
#include "zeroplan/error.hpp"

namespace zeroplan::tool {
namespace {

struct Sibling {
    const char* name;
    const char* about;
    const char* needs;  ///< what its part is built with
};

constexpr std::array siblings{
    Sibling{"sim", "Plan and simulated step: time, throughput, exposed communication",
            "the simulator needs SimGrid 3.32 or newer (Debian: apt install libsimgrid-dev)"},
    Sibling{"run", "Executes the plan on real ranks and measures it",
            "the runner needs no further package (Debian: apt install libopenblas-dev makes it faster)"},
    Sibling{"gui", "The desktop window",
            "the window needs Qt 6.4 or newer (Debian: apt install qt6-base-dev qt6-svg-dev)"},
};

}  // namespace

void add_siblings(CLI::App& app) {
    for (const Sibling& sibling : siblings) app.add_subcommand(sibling.name, sibling.about);
}

bool is_sibling(std::string_view name) {
    for (const Sibling& sibling : siblings)
        if (name == sibling.name) return true;
    return false;
}

std::string sibling_path(std::string_view name) {
    const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    std::string path = (folder / fmt::format("zeroplan-{}", name)).string();
    if (::access(path.c_str(), X_OK) == 0) return path;
    for (const Sibling& sibling : siblings)
        if (name == sibling.name)
            throw Error(ErrorCode::not_found,
                        fmt::format("zeroplan-{} was not built: {} is not there", name, path),
                        fmt::format("{}; then build again", sibling.needs));
    throw Error(ErrorCode::not_found, fmt::format("{} is not there", path));
}

void become_sibling(const char* name, int argc, char** argv) {
    const std::string path = sibling_path(name);
    std::string argv0 = fmt::format("zeroplan-{}", name);
    std::vector<char*> arguments{argv0.data()};
    arguments.insert(arguments.end(), argv + 2, argv + argc);
    arguments.push_back(nullptr);
    ::execv(path.c_str(), arguments.data());
    throw Error(ErrorCode::io, fmt::format("cannot start {}: {}", path, std::strerror(errno)));
}

}  // namespace zeroplan::tool
