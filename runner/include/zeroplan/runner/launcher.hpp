#pragma once
#include <string>
#include <vector>

#include "zeroplan/error.hpp"

namespace zeroplan::runner {

/// Starts `ranks` processes of `command` on this machine as torchrun would (RANK, WORLD_SIZE, LOCAL_RANK,
/// MASTER_ADDR, MASTER_PORT) and waits for them; their store lives here. Returns rank 0's exit status if no
/// rank failed.
///
/// If a rank fails the others are ended, and the error of the rank that failed of its own accord is thrown:
/// as it reported it, or Error{run_failed} naming the signal that killed it. A signal to end (Ctrl-C) is
/// passed on, and ends this process as well once no rank is left. If this process is killed its ranks are
/// killed too.
int launch(int ranks, const std::vector<std::string>& command);

/// Hands the error that ends this rank to the launcher. False if launch() hasn't started this process: then
/// the error is to be printed here.
bool report_to_launcher(const Error& error);

}  // namespace zeroplan::runner
