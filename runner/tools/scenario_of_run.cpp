#include "scenario_of_run.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "zeroplan/runner/process_memory.hpp"
#include "zeroplan/runner/rank_environment.hpp"
#include "zeroplan/stated_gpus.hpp"

namespace zeroplan::tool {
namespace {

Error wrong_flag(const std::string& flag, const std::string& message, const std::string& hint) {
    return {ErrorCode::invalid_input, message, hint, {"command line", flag}};
}

std::optional<std::string> value_of(const command::ScenarioFlags& flags, const char* flag) {
    const auto found = flags.values.find(flag);
    if (found == flags.values.end() || found->second.empty()) return std::nullopt;
    return found->second;
}

std::optional<int> gpus_flag(const command::ScenarioFlags& flags) {
    const auto text = value_of(flags, "--gpus");
    if (!text) return std::nullopt;
    int value = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error != std::errc{} || end != text->data() + text->size())
        throw wrong_flag("--gpus", fmt::format("'{}' is not a number", *text), "give the number of ranks");
    return value;
}

/// The request without what flags say of the cluster.
ScenarioRequest request_without_cluster(const command::ScenarioFlags& flags) {
    command::ScenarioFlags rest = flags;
    for (const char* flag : {"--topology", "--nodes", "--gpu", "--gpus"}) rest.values.erase(flag);
    return command::to_request(rest);
}

/// What the scenario's file says, where nobody else does.
int stated_ranks(const command::ScenarioFlags& flags) {
    const auto stated = stated_gpus(request_without_cluster(flags));
    if (!stated) return 1;
    if (*stated < 1 || *stated > static_cast<std::uint64_t>(runner::most_host_ranks))
        throw Error(ErrorCode::invalid_input,
                    fmt::format("the scenario is of {} GPUs, and the host back end has from 1 to {} ranks",
                                *stated, runner::most_host_ranks),
                    "say with --ranks how many to run here", {"", "/cluster/gpus_used"});
    return static_cast<int>(*stated);
}

/// Flags of the cluster that a run on this machine can't follow.
void check_cluster_flags(const command::ScenarioFlags& flags) {
    struct Usual {
        const char *flag, *value;
    };
    for (const Usual& usual : {Usual{"--topology", "host"}, {"--nodes", "1"}, {"--gpu", "host-cpu"}}) {
        const auto asked = value_of(flags, usual.flag);
        if (asked && *asked != usual.value)
            throw wrong_flag(usual.flag,
                             fmt::format("the host back end runs on this machine ({} {}), not on {}",
                                         usual.flag, usual.value, *asked),
                             "leave the flag out; plan and sim know other clusters");
    }
}

/// Whatever --set says of the cluster would be lost: a run has the cluster of this machine.
void check_set_keys(const command::ScenarioFlags& flags) {
    for (const std::string& text : flags.set) {
        const std::string pointer = text.substr(0, text.find('='));
        if (pointer == "/cluster" || pointer.starts_with("/cluster/"))
            throw wrong_flag(
                "--set",
                fmt::format("{} is set, but the host back end runs on this machine, whose cluster "
                            "is what it is",
                            pointer),
                "leave it out: --ranks is the number of ranks, and plan and sim know other clusters");
    }
}

std::uint64_t memory_of_machine() {
    return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
           static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

int ranks_of_run(std::optional<int> ranks_flag, const command::ScenarioFlags& flags,
                 std::optional<int> launched) {
    const std::optional<int> gpus = gpus_flag(flags);
    if (ranks_flag && gpus && *ranks_flag != *gpus)
        throw wrong_flag("--ranks", fmt::format("--ranks {} and --gpus {} differ", *ranks_flag, *gpus),
                         "both are the number of ranks: give one of them");
    const std::optional<int> asked = ranks_flag ? ranks_flag : gpus;
    if (asked && launched && *asked != *launched)
        throw wrong_flag(
            "--ranks",
            fmt::format("{} ranks are asked for, and the launcher has started {}", *asked, *launched),
            "leave --ranks out under torchrun, srun or mpirun");
    const auto known = asked ? asked : launched;
    const int ranks = known ? *known : stated_ranks(flags);
    if (ranks < 1 || ranks > runner::most_host_ranks)
        throw wrong_flag("--ranks", fmt::format("{} is not from 1 to {}", ranks, runner::most_host_ranks),
                         "the ranks of the host back end are processes of this machine");
    return ranks;
}

ScenarioRequest request_of_run(const command::ScenarioFlags& flags, int ranks) {
    check_cluster_flags(flags);
    check_set_keys(flags);
    ScenarioRequest request = request_without_cluster(flags);
    request.settings.push_back(
        {"/cluster",
         fmt::format(R"({{"topology":"host","nodes":1,"gpus_used":{},"host":{{"memory_bytes":{}}}}})", ranks,
                     memory_of_machine()),
         "--ranks"});
    return request;
}

void check_memory(const Plan& plan) {
    Bytes needed;
    for (const RankGroup& group : plan.rank_groups) {
        Bytes peak;
        for (const PhaseMemory& phase : group.phases) peak = std::max(peak, phase.peak_allocated);
        for (const RankRange& range : group.ranks) needed += (range.last - range.first + 1) * peak;
    }
    const Bytes available = runner::available_memory();
    if (needed > available)
        throw Error(ErrorCode::invalid_input,
                    fmt::format("the {} ranks need {} in all, and this machine has {} left",
                                plan.scenario.world_size(), format_bytes(needed), format_bytes(available)),
                    "use fewer ranks, a higher ZeRO stage or a smaller model", {"", "/cluster"});
}

}  // namespace zeroplan::tool
