#include "zeroplan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "account.hpp"
#include "activations_on_host.hpp"
#include "engines/engine.hpp"
#include "plan_warnings.hpp"
#include "runs_all_reduce.hpp"
#include "zeroplan/collective_cost.hpp"
#include "zeroplan/memory_interval.hpp"
#include "zeroplan/runtime_memory.hpp"

namespace zeroplan {
namespace {

/// The phase that decides whether the group fits. What is reserved may never shrink, so of phases with the
/// same the one that fills it decides; the first step repeats as the steady one, which then is the one to
/// name.
const PhaseMemory& deciding_phase(const RankGroup& group) {
    const auto filled = [](const PhaseMemory& phase) {
        return std::pair{phase.peak_reserved, phase.peak_allocated};
    };
    const PhaseMemory* deciding = &group.phases.front();
    for (const PhaseMemory& phase : group.phases)
        if (phase.phase != Phase::save && filled(phase) >= filled(*deciding)) deciding = &phase;
    return *deciding;
}

/// Live at once in the highest phase: no allocator needs less.
Bytes highest_allocated(const RankGroup& group) {
    Bytes highest;
    for (const PhaseMemory& phase : group.phases)
        if (phase.phase != Phase::save) highest = std::max(highest, phase.peak_allocated);
    return highest;
}

/// What a rank's allocator holds at least where `room` is left for it: what it reserves, and where that is
/// too much, what it can't do without. PyTorch's gives free segments back before it fails; an arena has none
/// to give.
Bytes least_reserved(const Plan& plan, const RankGroup& group, Bytes room) {
    const Bytes reserved = group.wanted_reserved, allocated = highest_allocated(group);
    if (reserved <= room || plan.allocator != AllocatorKind::caching) return reserved;
    if (allocated > room) return allocated;  // which decides it
    return std::min(reserved,
                    reserved_within(plan.programs[group.program], room, plan.scenario.training.allocator));
}

/// Near the end of the device PyTorch's allocator gives free segments back, and keeps less than it would.
void squeeze(RankGroup& group, const StepProgram& program, Bytes capacity,
             const CachingAllocatorOptions& options) {
    const Bytes room = capacity - std::min(capacity, group.runtime);
    if (group.wanted_reserved <= room || highest_allocated(group) > room) return;
    const Bytes reserved = reserved_within(program, room, options);
    if (reserved > room) return;  // runs out of memory: what it would need is what there is to say
    for (PhaseMemory& phase : group.phases)
        if (phase.phase != Phase::save) phase.peak_reserved = std::min(phase.peak_reserved, reserved);
    group.peak_reserved = std::min(group.peak_reserved, reserved);
    group.peak_device = group.peak_reserved + group.runtime;
}

Verdict judge(Bytes low, Bytes high, Bytes capacity) {
    if (high <= capacity) return Verdict::fits;
    return low <= capacity ? Verdict::marginal : Verdict::does_not_fit;
}

const Section& section_of(const StepProgram& program, const PhaseMemory& phase) {
    switch (phase.phase) {
        case Phase::load:
            return program.load;
        case Phase::init:
            return program.init;
        case Phase::first_step:
            if (!program.first_step.empty()) return program.first_step[phase.section];
            break;
        case Phase::steady_step:
            break;
        case Phase::save:
            return program.save;
    }
    return program.step[phase.section];
}

/// The operation that the allocation at a phase's peak serves: the next one that runs.
std::string peak_operation(const Plan& plan, const RankGroup& group, const PhaseMemory& phase) {
    const StepProgram& program = plan.programs[group.program];
    const std::vector<Operation>& operations = section_of(program, phase).operations;
    for (std::size_t o = phase.operation; o < operations.size(); ++o) {
        const OperationBody& body = operations[o].body;
        if (std::holds_alternative<Allocate>(body) || std::holds_alternative<Free>(body)) continue;
        return describe(operations[o], program, model_of(plan, group.program),
                        layout_of(plan, group.program));
    }
    if (phase.phase == Phase::load) return "load of the parameters";
    return phase.phase == Phase::init ? "set-up of the optimizer" : "between steps";
}

bool is_trained_in(Phase phase) {
    return phase != Phase::load && phase != Phase::save;
}

/// Training doesn't fit where its processes take more than a node's memory. Loading and saving may be done
/// one rank after another, so they are only warned of.
void judge_host(const Plan& plan, MemorySummary& memory) {
    memory.host_capacity = plan.scenario.cluster.host.memory;
    for (const RankGroup& group : plan.rank_groups) {
        for (const PhaseMemory& phase : group.phases) {
            memory.host_per_node = std::max(memory.host_per_node, phase.host_per_node);
            if (is_trained_in(phase.phase) && phase.host_per_node > memory.host_capacity)
                memory.verdict = Verdict::does_not_fit;
        }
    }
}

MemorySummary summarise(const Plan& plan, const RuntimeMemory& runtime) {
    MemorySummary memory{.capacity = plan.scenario.cluster.gpu.memory_usable};
    const PhaseMemory* deciding = nullptr;
    for (std::uint32_t g = 0; g < plan.rank_groups.size(); ++g) {
        const PhaseMemory& phase = deciding_phase(plan.rank_groups[g]);
        if (deciding != nullptr &&
            plan.rank_groups[g].wanted_reserved <= plan.rank_groups[memory.worst_group].wanted_reserved)
            continue;
        deciding = &phase;
        memory.worst_group = g;
    }
    const RankGroup& worst = plan.rank_groups[memory.worst_group];
    memory.overall_peak_device = deciding->peak_reserved + runtime.expected;
    const Bytes room = memory.capacity - std::min(memory.capacity, runtime.low);
    for (const RankGroup& group : plan.rank_groups) {
        memory.low = std::max(memory.low, least_reserved(plan, group, room) + runtime.low);
        memory.high = std::max(memory.high, group.wanted_reserved + runtime.high);
    }
    memory.peak_rank = worst.ranks.front().first;
    memory.peak_phase = deciding->phase;
    memory.peak_operation = peak_operation(plan, worst, *deciding);
    memory.verdict = judge(memory.low, memory.high, memory.capacity);
    judge_host(plan, memory);
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
        case GroupKind::tensor_group:
            return training.tensor_parallel;
        case GroupKind::context_group:
            return training.context_parallel;
        case GroupKind::expert_group:
            return training.expert_parallel;
        case GroupKind::expert_data_group:
            return plan.scenario.world_size() / training.pipeline_parallel /
                   (training.expert_parallel * training.expert_tensor_parallel);
        case GroupKind::secondary_shard_group:
            return group_sizes(training, plan.layout.shard_group).secondary_shard;
        case GroupKind::embedding_group:
            return training.pipeline_parallel > 1 ? 2 : 1;
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

void add_message(CommunicationVolume& volume, std::uint64_t repeat, const Transfer& transfer) {
    const Bytes bytes = repeat * (transfer.elements * Bytes{bytes_per_element(transfer.dtype)});
    volume.operations = checked_sum(volume.operations, repeat);
    volume.buffer_bytes += bytes;
    volume.bytes_per_rank += bytes;
}

std::map<std::string, CommunicationVolume> communication(const Plan& plan) {
    std::map<std::string, CommunicationVolume> volumes;
    for (const Section& section : plan.programs[plan.rank_groups[plan.memory.worst_group].program].step) {
        for (const Operation& operation : section.operations) {
            if (const auto* transfer = std::get_if<Transfer>(&operation.body); transfer && transfer->send)
                add_message(volumes["send"], section.repeat, *transfer);
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

/// Names the sizes that make bytes overflow, and blames the largest: the batch of a step, else the model.
Error placed_overflow(const Error& error, const Scenario& scenario) {
    if (error.code() != ErrorCode::overflow || !error.place().pointer.empty()) return error;
    const TrainingConfig& t = scenario.training;
    const std::array sizes{std::pair{"micro_batch_size", t.micro_batch_size},
                           std::pair{"sequence_length", t.sequence_length},
                           std::pair{"gradient_accumulation_steps", t.gradient_accumulation_steps}};
    const auto& [key, largest] = *std::max_element(
        sizes.begin(), sizes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    const double tokens = static_cast<double>(t.micro_batch_size) * static_cast<double>(t.sequence_length) *
                          static_cast<double>(t.gradient_accumulation_steps);
    const bool is_batch = tokens > static_cast<double>(scenario.model.parameter_count());
    return {error.code(),
            fmt::format("{}, with micro_batch_size {} × sequence_length {} × gradient_accumulation_steps {} "
                        "and a model of {} parameters",
                        error.message(), format_count(t.micro_batch_size), format_count(t.sequence_length),
                        format_count(t.gradient_accumulation_steps),
                        format_count(scenario.model.parameter_count())),
            is_batch ? fmt::format("{} {} is the largest: make it smaller", key, format_count(largest))
                     : "make the model smaller",
            {"", is_batch ? fmt::format("/training/{}", key) : "/model"}};
}

Plan planned(const Scenario& scenario) {
    EngineOutput engine = run_engine(scenario);
    const RuntimeMemory runtime =
        runtime_memory(scenario, {engine.communicators, runs_all_reduce(engine.programs)});
    Plan plan{.scenario = scenario,
              .rule_set = std::move(engine.rule_set),
              .layout = std::move(engine.layout),
              .programs = std::move(engine.programs),
              .rank_models = std::move(engine.rank_models),
              .allocator = engine.allocator,
              .warnings = std::move(engine.warnings),
              .constants = std::move(engine.constants)};
    plan.constants.insert(plan.constants.end(), runtime.constants.begin(), runtime.constants.end());
    if (plan.allocator == AllocatorKind::caching)
        for (Constant& share : memory_interval_constants()) plan.constants.push_back(std::move(share));
    for (std::uint32_t i = 0; i < plan.programs.size(); ++i) {
        plan.rank_groups.push_back(account(plan.programs[i], i, std::move(engine.program_ranks[i]),
                                           engine.allocator, plan.scenario.training.allocator, runtime));
        RankGroup& group = plan.rank_groups.back();
        group.wanted_reserved = deciding_phase(group).peak_reserved;
        if (plan.allocator == AllocatorKind::caching)
            squeeze(group, plan.programs[i], scenario.cluster.gpu.memory_usable,
                    plan.scenario.training.allocator);
        HostPhases host = engine.host.empty() ? HostPhases{} : engine.host[i];
        add_activations(host, plan.programs[i]);
        account_host(group, host, scenario.cluster);
    }
    plan.memory = summarise(plan, runtime);
    plan.communication = communication(plan);
    (void)total_communication(plan);  // too large for one report is too large for all
    add_plan_warnings(plan);
    return plan;
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

CommunicationVolume total_communication(const Plan& plan) {
    CommunicationVolume total;
    for (const auto& [kind, volume] : plan.communication) {
        total.operations = checked_sum(total.operations, volume.operations);
        total.bytes_per_rank += volume.bytes_per_rank;
        total.buffer_bytes += volume.buffer_bytes;
    }
    return total;
}

Plan make_plan(const Scenario& scenario) {
    try {
        return planned(scenario);
    } catch (const Error& error) {
        throw placed_overflow(error, scenario);
    }
}

}  // namespace zeroplan
