#pragma once
#include "zeroplan/units.hpp"

namespace zeroplan::runner {

/// What the kernel says about this process's memory (/proc/self/status).
struct ProcessMemory {
    Bytes resident;  ///< VmRSS: pages present now, shared memory included
    Bytes peak;      ///< VmHWM: the highest VmRSS since start or since the last reset
};

/// Throws Error{run_failed} if /proc can't be read.
ProcessMemory process_memory();

/// Sets VmHWM back to VmRSS (writes 5 to /proc/self/clear_refs). False where the kernel doesn't permit it;
/// the peak then stays that of the whole process and only its growth can be reported.
bool reset_process_peak();

/// Free for new processes on this machine: MemAvailable, or what the memory control group leaves if that is
/// less.
Bytes available_memory();

}  // namespace zeroplan::runner
