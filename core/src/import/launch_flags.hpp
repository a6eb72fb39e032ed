#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "import/shell_words.hpp"
#include "zeroplan/import.hpp"

namespace zeroplan {

/// Flags of a command line: --name value, --name=value, or --name alone; - and _ inside a name are the same,
/// as argparse's users write them. Holds a reference to the words, and remembers which flags were asked for.
class LaunchFlags {
public:
    LaunchFlags(const std::vector<std::string>& words, std::size_t first) : words_(&words), first_(first) {}

    /// The value of the first of `names` that is there.
    std::optional<std::string> value(const std::vector<const char*>& names) const;
    /// All words behind --name up to the next flag; none without it.
    std::vector<std::string> values(const char* name) const;
    /// --name, --name True; false for --name False.
    bool is_on(const char* name) const;
    /// --name stands there, whatever follows.
    bool has(const char* name) const;
    /// Flags that stand there and that nothing has asked for, each with its value.
    std::vector<std::string> unread() const;

private:
    /// Where `name` stands; words' size if nowhere.
    std::size_t find(const char* name) const;

    const std::vector<std::string>* words_;
    std::size_t first_;
    mutable std::set<std::size_t> read_;  ///< places of the words asked for
};

/// Flags of launchers that place processes and count them, and change nothing else. source:
/// torch/distributed/run.py; accelerate/commands/launch.py; deepspeed/launcher/runner.py
void read_launcher_flags(const LaunchFlags& flags);

/// --bf16 and --fp16. Both at once are rejected: transformers/training_args.py (__post_init__) and
/// megatron/training/arguments.py (validate_args) refuse them. False if neither is there.
bool import_precision(Import& import, const ShellLine& line, const LaunchFlags& flags);

/// Hugging Face's TrainingArguments on the line, as settings of the scenario: batch, accumulation, precision,
/// optimizer, checkpointing, sequence length, --fsdp and --deepspeed; of a script of Megatron-LM's its own
/// arguments. Every other flag on the line is reported as not read.
void import_training_flags(Import& import, const ShellLine& line);

}  // namespace zeroplan
