#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace zeroplan {

/// One command of a shell script as far as launch lines need it: backslash-joined, comments gone.
struct ShellLine {
    std::size_t number = 1;          ///< of its first line
    std::vector<std::string> words;  ///< quotes removed, variables expanded where they are known
};

/// Simple commands in order. `variables` is what is known at the start; assignments (NAME=value, with or
/// without export) are added as they come. Lines that start with #SBATCH come as words, too. Not a shell:
/// loops, functions and command substitutions stay what they are, as words.
std::vector<ShellLine> shell_lines(std::string_view script, std::map<std::string, std::string>& variables);

/// `text` with $NAME and ${NAME} replaced where NAME is known.
std::string expanded(std::string_view text, const std::map<std::string, std::string>& variables);

}  // namespace zeroplan
