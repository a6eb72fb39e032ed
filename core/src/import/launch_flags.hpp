#pragma once
#include <optional>
#include <string>
#include <vector>

#include "import/shell_words.hpp"
#include "zeroplan/import.hpp"

namespace zeroplan {

/// Flags of a command line: --name value, --name=value, or --name alone. Holds a reference to the words.
class LaunchFlags {
public:
    LaunchFlags(const std::vector<std::string>& words, std::size_t first) : words_(&words), first_(first) {}

    /// The value of the first of `names` that is there.
    std::optional<std::string> value(const std::vector<const char*>& names) const;
    /// --name, --name True; false for --name False.
    bool is_on(const char* name) const;

private:
    const std::vector<std::string>* words_;
    std::size_t first_;
};

/// Hugging Face's TrainingArguments on the line, as settings of the scenario: batch, accumulation, precision,
/// optimizer, checkpointing, sequence length, --fsdp and --deepspeed.
void import_training_flags(Import& import, const ShellLine& line);

}  // namespace zeroplan
