#pragma once
#include <string_view>

namespace zeroplan {

/// `line` without what launchers and loggers put before a program's own words, as often as they do: a group
/// in brackets (`[rank0]: ` of torch, `[default0]:` of torchrun, `[1,0]<stdout>:` of mpirun, `[2023-11-02
/// 22:41:17,142] [INFO] [utils.py:803:see_memory_usage]` of DeepSpeed), a task's number (`0: ` of srun
/// --label), and a date, host and process (`Nov 02 22:41:17 node1 python[4242]: ` of journald).
std::string_view without_log_prefix(std::string_view line);

}  // namespace zeroplan
