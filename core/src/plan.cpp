#include "zeroplan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "account.hpp"
#include "engines/engine.hpp"
#include "zeroplan/runtime_memory.hpp"

namespace zeroplan {
namespace {

const PhaseMemory& highest_phase(const RankGroup& group) {
    // The first step repeats as the steady one, so an equal later phase is the one to name.
    const PhaseMemory* highest = &group.phases.front();
    for (const PhaseMemory& phase : group.phases)
        if (phase.phase != Phase::save && phase.peak_reserved >= highest->peak_reserved) highest = &phase;
    return *highest;
}

Verdict judge(Bytes low, Bytes high, Bytes capacity) {
    if (high <= capacity) return Verdict::fits;
    return low <= capacity ? Verdict::marginal : Verdict::does_not_fit;
}

std::string peak_operation(const Plan& plan, const RankGroup& group) {
    const StepProgram& program = plan.programs[group.program];
    const Section& section = program.step[group.steady.section];
    // The allocation that makes the peak serves the next operation that runs.
    for (std::size_t o = group.steady.operation; o < section.operations.size(); ++o) {
        const OperationBody& body = section.operations[o].body;
        if (std::holds_alternative<Allocate>(body) || std::holds_alternative<Free>(body)) continue;
        return describe(section.operations[o], program, model_of(plan, group.program),
                        layout_of(plan, group.program));
    }
    return "between steps";
}

MemorySummary summarise(const Plan& plan, const RuntimeMemory& runtime) {
    MemorySummary memory{.capacity = plan.scenario.cluster.gpu.memory_usable};
    Bytes worst_allocated;
    for (std::uint32_t g = 0; g < plan.rank_groups.size(); ++g) {
        const PhaseMemory& phase = highest_phase(plan.rank_groups[g]);
        const Bytes device = phase.peak_reserved + runtime.expected;
        if (g != 0 && device <= memory.overall_peak_device) continue;
        memory.worst_group = g;
        memory.overall_peak_device = device;
        memory.peak_phase = phase.phase;
        memory.high = phase.peak_reserved + runtime.high;
        worst_allocated = phase.peak_allocated;
    }
    const RankGroup& worst = plan.rank_groups[memory.worst_group];
    memory.low = worst_allocated + runtime.low;  // an arena without holes
    memory.peak_rank = worst.ranks.front().first;
    memory.peak_operation = peak_operation(plan, worst);
    memory.verdict = judge(memory.low, memory.high, memory.capacity);
    memory.host_capacity = plan.scenario.cluster.host.memory;
    for (const PhaseMemory& phase : worst.phases)
        memory.host_per_node = std::max(memory.host_per_node, phase.host_per_node);
    return memory;
}

std::uint64_t group_size(const Plan& plan, GroupKind kind) {
    const TrainingConfig& training = plan.scenario.training;
    switch (kind) {
        case GroupKind::shard_group:
            return plan.layout.shard_group;
        case GroupKind::replica_group:
            return training.data_parallel * training.context_parallel / plan.layout.shard_group;
        case GroupKind::world:
            return plan.scenario.world_size();
    }
    return 1;
}

/// Bytes one rank sends in a ring of n ranks: S·(n−1)/n for all-gather and reduce-scatter, twice that for
/// all-reduce.
std::uint64_t ring_bytes_sent(CollectiveKind kind, std::uint64_t bytes, std::uint64_t n) {
    if (n <= 1) return 0;
    const std::uint64_t passes = kind == CollectiveKind::all_reduce ? 2 : 1;
    return passes * (bytes - bytes / n);
}

std::map<std::string, CommunicationVolume> communication(const Plan& plan) {
    std::map<std::string, CommunicationVolume> volumes;
    for (const Section& section : plan.programs[plan.rank_groups[plan.memory.worst_group].program].step) {
        for (const Operation& operation : section.operations) {
            const auto* collective = std::get_if<Collective>(&operation.body);
            if (collective == nullptr) continue;
            const Bytes buffer = collective->elements * Bytes{bytes_per_element(collective->dtype)};
            CommunicationVolume& volume = volumes[std::string(to_string(collective->kind))];
            volume.operations = checked_sum(volume.operations, section.repeat);
            volume.buffer_bytes += section.repeat * buffer;
            volume.bytes_per_rank +=
                section.repeat *
                Bytes{ring_bytes_sent(collective->kind, buffer.count(), group_size(plan, collective->group))};
        }
    }
    return volumes;
}

/// True if anything of the training is kept in host memory.
bool uses_host_memory(const TrainingConfig& training) {
    for (const OffloadTarget target : {training.offload_optimizer, training.offload_parameters,
                                       training.offload_activations, training.offload_gradients})
        if (target != OffloadTarget::none) return true;
    return false;
}

/// What the scenario states and this version's figures leave out.
void warn_of_what_is_left_out(Plan& plan) {
    if (uses_host_memory(plan.scenario.training) && plan.memory.host_per_node == Bytes{})
        plan.warnings.push_back({"host_memory_not_counted",
                                 "offload saves device memory here; the host memory that it takes is not "
                                 "counted by this version"});
    if (const auto watts = plan.scenario.cluster.power_limit_watts)
        plan.warnings.push_back(
            {"power_limit_not_modelled",
             fmt::format("times are those of a GPU without the power limit of {} W, which may slow it down",
                         *watts)});
}

void warn(Plan& plan) {
    for (const std::string& note : plan.scenario.model.notes)
        plan.warnings.push_back({"model_assumption", note});
    const RankGroup& worst = plan.rank_groups[plan.memory.worst_group];
    const PhaseMemory& save = worst.phases.back();
    if (plan.memory.verdict == Verdict::marginal)
        plan.warnings.push_back(
            {"marginal", fmt::format("the interval {} to {} spans the capacity {}: it may or may not fit",
                                     format_gib(plan.memory.low), format_gib(plan.memory.high),
                                     format_gib(plan.memory.capacity))});
    if (save.peak_reserved + worst.runtime > plan.memory.capacity &&
        plan.memory.verdict != Verdict::does_not_fit)
        plan.warnings.push_back(
            {"save_does_not_fit",
             fmt::format("training fits, but gathering a full checkpoint needs {} of {}",
                         format_gib(save.peak_reserved + worst.runtime), format_gib(plan.memory.capacity))});
}

}  // namespace

std::string_view to_string(Verdict verdict) {
    switch (verdict) {
        case Verdict::fits:
            return "fits";
        case Verdict::marginal:
            return "marginal";
        case Verdict::does_not_fit:
            return "does_not_fit";
    }
    return "?";
}

std::string_view to_string(Phase phase) {
    switch (phase) {
        case Phase::load:
            return "load";
        case Phase::init:
            return "init";
        case Phase::first_step:
            return "first_step";
        case Phase::steady_step:
            return "steady_step";
        case Phase::save:
            return "save";
    }
    return "?";
}

std::string to_string(const std::vector<RankRange>& ranks) {
    std::string text;
    for (const RankRange& range : ranks) {
        if (!text.empty()) text += ',';
        text += range.first == range.last ? fmt::format("{}", range.first)
                                          : fmt::format("{}-{}", range.first, range.last);
    }
    return text;
}

const ModelSpec& model_of(const Plan& plan, std::uint32_t program) {
    return plan.rank_models.empty() ? plan.scenario.model : plan.rank_models[program].model;
}

const ShardLayout& layout_of(const Plan& plan, std::uint32_t program) {
    return plan.rank_models.empty() ? plan.layout : plan.rank_models[program].layout;
}

std::uint64_t sequence_length_of(const Plan& plan, std::uint32_t program) {
    return plan.rank_models.empty() ? plan.scenario.training.sequence_length
                                    : plan.rank_models[program].sequence_length;
}

Plan make_plan(const Scenario& scenario) {
    EngineOutput engine = run_engine(scenario);
    const RuntimeMemory runtime = runtime_memory(scenario, engine.communicators);
    Plan plan{.scenario = scenario,
              .rule_set = std::move(engine.rule_set),
              .layout = std::move(engine.layout),
              .programs = std::move(engine.programs),
              .rank_models = std::move(engine.rank_models),
              .warnings = std::move(engine.warnings),
              .constants = std::move(engine.constants)};
    plan.constants.insert(plan.constants.end(), runtime.constants.begin(), runtime.constants.end());
    for (std::uint32_t i = 0; i < plan.programs.size(); ++i)
        plan.rank_groups.push_back(
            account(plan.programs[i], i, std::move(engine.program_ranks[i]), engine.allocator, runtime));
    plan.memory = summarise(plan, runtime);
    plan.communication = communication(plan);
    warn(plan);
    warn_of_what_is_left_out(plan);
    return plan;
}

}  // namespace zeroplan
