#pragma once
#include <functional>
#include <optional>
#include <string>

#include "zeroplan/runner/tcp_store.hpp"

namespace zeroplan::runner {

/// Which rank this process is, as the launcher that started it says in the environment.
struct RankEnvironment {
    int rank = 0, world_size = 1;
    StoreAddress store;
    bool hosts_store = false;  ///< rank 0 has to start the store's server; false where the launcher keeps one
    std::string launcher;      ///< "torchrun", "srun", "mpirun", "zeroplan run": for people
    friend bool operator==(const RankEnvironment&, const RankEnvironment&) = default;
};

/// Looks up an environment variable; nothing if it isn't set.
using Lookup = std::function<std::optional<std::string>(const std::string& name)>;
Lookup process_environment();

/// Reads RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT (torchrun, zeroplan run), or OMPI_COMM_WORLD_* (mpirun),
/// PMI_* (mpiexec), SLURM_PROCID and SLURM_STEP_NUM_TASKS (srun; not in a batch script outside srun). Where
/// MASTER_PORT isn't set, or torchrun's agent listens on it itself, the ranks meet at a local name made of
/// the job's. Nothing if no launcher started this process. Throws Error{invalid_input} naming variable and
/// value.
std::optional<RankEnvironment> rank_environment(const Lookup& lookup);

/// The most ranks of a host run.
inline constexpr int most_host_ranks = 64;

}  // namespace zeroplan::runner
