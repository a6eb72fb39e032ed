#pragma once
#include "import/launch_flags.hpp"

namespace zeroplan {

/// The line starts a script of Megatron-LM's: pretrain_*.py, or one with its degrees.
bool is_megatron(const ShellLine& line);

/// Megatron-LM's arguments as settings of the scenario: degrees, global batch, optimizer, recompute, offload,
/// overlap, kernels, and the model of pretrain_gpt.py. `has_precision`: --bf16 or --fp16 stands there. Its
/// micro-batch and sequence length are read with everyone's. source: megatron/training/arguments.py
void import_megatron_flags(Import& import, const ShellLine& line, const LaunchFlags& flags,
                           bool has_precision);

/// The arguments that make a GPT of pretrain_gpt.py.
void import_megatron_model(Import& import, const ShellLine& line, const LaunchFlags& flags);

/// The whole number behind --name. Anything else is asked for.
std::optional<std::uint64_t> count_of(Import& import, const ShellLine& line, const LaunchFlags& flags,
                                      const char* name);

}  // namespace zeroplan
