#include "zeroplan/runner/rank_environment.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>

#include "launch_environment.hpp"
#include "zeroplan/error.hpp"

namespace zeroplan::runner {
namespace {

/// How a launcher names rank, world size and the job.
struct Names {
    const char* launcher;
    const char* rank;
    const char* world_size;
    const char* local_rank;
    std::array<const char*, 3> job;  ///< variables that together tell this job from others; "" = none
};
constexpr std::array launchers{
    Names{"torchrun",
          "RANK",
          "WORLD_SIZE",
          "LOCAL_RANK",
          {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_PORT"}},
    Names{"mpirun",
          "OMPI_COMM_WORLD_RANK",
          "OMPI_COMM_WORLD_SIZE",
          "OMPI_COMM_WORLD_LOCAL_RANK",
          {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", ""}},
    Names{"mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", {"PMI_ID", "PMI_JOBID", ""}},
    Names{"srun",
          "SLURM_PROCID",
          "SLURM_STEP_NUM_TASKS",
          "SLURM_LOCALID",
          {"SLURM_JOB_ID", "SLURM_STEP_ID", ""}}};

constexpr int default_port = 29500;

Error wrong(const std::string& name, const std::string& value, const std::string& what) {
    return {ErrorCode::invalid_input,
            fmt::format("{}={} {}", name, value, what),
            "the launcher sets it; unset RANK and WORLD_SIZE to start ranks with --ranks N",
            {"environment", ""}};
}

int number(const Lookup& lookup, const std::string& name, int least, int most) {
    const auto text = lookup(name);
    if (!text)
        throw Error(ErrorCode::invalid_input,
                    fmt::format("{} is not set, though other variables of the "
                                "launcher are",
                                name),
                    "set both RANK and WORLD_SIZE, or neither", {"environment", ""});
    int value = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error != std::errc{} || end != text->data() + text->size())
        throw wrong(name, *text, "is not a number");
    if (value < least || value > most)
        throw wrong(name, *text, fmt::format("is not from {} to {}", least, most));
    return value;
}

/// A name that the ranks of one job have in common, and no other user's or job's ranks have; nothing if the
/// launcher doesn't name its jobs.
std::optional<std::string> job_name(const Lookup& lookup, const Names& names) {
    std::string job;
    for (const char* variable : names.job)
        if (const auto value = *variable == '\0' ? std::nullopt : lookup(variable)) job += "-" + *value;
    if (job.empty()) return std::nullopt;
    return fmt::format("zeroplan-{}{}", getuid(), job);
}

StoreAddress store_address(const Lookup& lookup, const Names& names, bool port_is_taken) {
    StoreAddress address;
    const bool has_port = lookup("MASTER_PORT").has_value();
    const auto job = job_name(lookup, names);
    if (job && (port_is_taken || !has_port)) {
        address.local_name = *job;
        return address;
    }
    address.host = lookup("MASTER_ADDR").value_or("127.0.0.1");
    address.port =
        static_cast<std::uint16_t>(has_port ? number(lookup, "MASTER_PORT", 1, 65535) : default_port);
    return address;
}

/// No process is the fifth of its machine and the second of all.
void check_local_rank(const Lookup& lookup, const Names& names, int rank) {
    if (!lookup(names.local_rank)) return;
    const int local = number(lookup, names.local_rank, 0, most_host_ranks);
    if (local > rank)
        throw wrong(names.local_rank, fmt::format("{}", local),
                    fmt::format("is above {}={}", names.rank, rank));
}

/// Variables of a second launcher that say something else: which of the two started this process can't be
/// told. One that started a single process may have started a launcher in it, as srun does with torchrun.
void check_other_launchers(const Lookup& lookup, const Names& joined, const RankEnvironment& environment) {
    if (lookup("TORCHELASTIC_RUN_ID")) return;  // torchrun, whatever it runs in
    for (const Names& other : launchers) {
        if (&other == &joined || !lookup(other.rank) || !lookup(other.world_size)) continue;
        const int size = number(lookup, other.world_size, 1, most_host_ranks),
                  rank = number(lookup, other.rank, 0, most_host_ranks);
        if (size == 1 || (size == environment.world_size && rank == environment.rank)) continue;
        throw Error(
            ErrorCode::invalid_input,
            fmt::format("{}={} of {}={}, but {}={} of {}={}", joined.rank, environment.rank,
                        joined.world_size, environment.world_size, other.rank, rank, other.world_size, size),
            fmt::format("unset the variables that are left over: those of {} or those of {}", joined.launcher,
                        other.launcher),
            {"environment", ""});
    }
}

}  // namespace

Lookup process_environment() {
    return [](const std::string& name) -> std::optional<std::string> {
        const char* value = std::getenv(name.c_str());
        return value == nullptr ? std::nullopt : std::optional<std::string>(value);
    };
}

std::optional<RankEnvironment> rank_environment(const Lookup& lookup) {
    for (const Names& names : launchers) {
        const bool found = names.launcher == launchers[0].launcher
                               ? lookup(names.rank) || lookup(names.world_size)
                               : lookup(names.rank) && lookup(names.world_size);
        if (!found) continue;
        RankEnvironment environment;
        environment.world_size = number(lookup, names.world_size, 1, most_host_ranks);
        environment.rank = number(lookup, names.rank, 0, most_host_ranks);
        if (environment.rank >= environment.world_size)
            throw wrong(names.rank, *lookup(names.rank),
                        fmt::format("is not below {}={}", names.world_size, environment.world_size));
        const bool is_ours = lookup(launched_by_us).has_value();
        if (!is_ours) check_other_launchers(lookup, names, environment);
        check_local_rank(lookup, names, environment.rank);
        // torchrun's agent keeps a store on MASTER_PORT itself, in a protocol of its own.
        const bool port_is_taken = !is_ours && lookup("TORCHELASTIC_USE_AGENT_STORE") == "True";
        environment.store = store_address(lookup, names, port_is_taken);
        environment.hosts_store = environment.rank == 0 && !is_ours;
        environment.launcher = is_ours ? "zeroplan run" : names.launcher;
        return environment;
    }
    return std::nullopt;
}

}  // namespace zeroplan::runner
