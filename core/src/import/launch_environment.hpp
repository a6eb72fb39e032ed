#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "import/shell_words.hpp"
#include "zeroplan/import.hpp"

namespace zeroplan {

/// A variable of the environment that PyTorch or NCCL reads, and the line that set it last.
struct EnvironmentVariable {
    std::string value;
    std::size_t line = 0;
};
using Environment = std::map<std::string, EnvironmentVariable>;

/// Those that the lines set, with or without export.
Environment environment_of(const std::vector<ShellLine>& lines);
/// Whether a line of `text` sets one of them.
bool sets_environment(std::string_view text);

/// States what changes the plan: PyTorch's allocator, and the algorithm and protocol that NCCL is held to;
/// reports every other variable of NCCL's, so that none is lost unnoticed. The allocator is stated where the
/// import says which engine trains, for the native one has none.
void import_environment(Import& import, const Environment& environment);

}  // namespace zeroplan
