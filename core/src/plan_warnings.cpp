#include "plan_warnings.hpp"

#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine_warnings.hpp"

namespace zeroplan {
namespace {

/// True if a step moves anything between the memories of device and host.
bool uses_host_memory(const Plan& plan) {
    for (const StepProgram& program : plan.programs)
        for (const Section& section : program.step)
            for (const Operation& operation : section.operations)
                if (std::holds_alternative<HostCopy>(operation.body)) return true;
    return false;
}

/// What the scenario states and this version's figures leave out.
void warn_of_what_is_left_out(Plan& plan) {
    if (plan.memory.host_per_node == Bytes{} && uses_host_memory(plan))
        plan.warnings.push_back({"host_memory_not_counted",
                                 "offload saves device memory here; the host memory that it takes is not "
                                 "counted by this version"});
    if (const auto watts = plan.scenario.cluster.power_limit_watts)
        plan.warnings.push_back(
            {"power_limit_estimated",
             fmt::format("times assume that the clock falls with the cube root of the power limit, {} W",
                         *watts)});
}

void warn_of_no_effect(Plan& plan, const char* key, const std::string& value, const char* needs) {
    plan.warnings.push_back({"no_effect", fmt::format("{} = {} has no effect {}", key, value, needs)});
}

/// Keys that say something, but not to this scenario. A default is never said by anyone.
void warn_of_keys_without_effect(Plan& plan) {
    const TrainingConfig& t = plan.scenario.training;
    if (t.offload_fraction != 1 && t.offload_optimizer == OffloadTarget::none)
        warn_of_no_effect(plan, "offload_fraction", fmt::format("{}", t.offload_fraction),
                          "without offload_optimizer");
    if (t.recompute_every != 1 && t.recompute != Recompute::selective_layer && t.recompute != Recompute::full)
        warn_of_no_effect(plan, "recompute_every", fmt::format("{}", t.recompute_every),
                          "unless recompute is selective_layer");
    if (t.secondary_shard_group > 1 && t.zero_stage < 3)
        warn_of_no_effect(plan, "secondary_shard_group", fmt::format("{}", t.secondary_shard_group),
                          "below zero_stage 3");
    const bool one_stage = t.pipeline_parallel == 1;
    if (one_stage && t.pipeline_schedule == PipelineSchedule::gpipe)
        warn_of_no_effect(plan, "pipeline_schedule", "gpipe", "with pipeline_parallel 1");
    if (one_stage && t.virtual_pipeline > 1)
        warn_of_no_effect(plan, "virtual_pipeline", fmt::format("{}", t.virtual_pipeline),
                          "with pipeline_parallel 1");
    if (t.sequence_parallel && t.tensor_parallel == 1)
        warn_of_no_effect(plan, "sequence_parallel", "true", "with tensor_parallel 1");
    if (t.async_tensor_parallel && t.tensor_parallel == 1)
        warn_of_no_effect(plan, "async_tensor_parallel", "true", "with tensor_parallel 1");
}

/// Fused attention keeps its output and a number a row; neither grows with the square of the sequence.
void warn_of_needless_recompute(Plan& plan) {
    const TrainingConfig& t = plan.scenario.training;
    if (plan.scenario.model.batch != BatchKind::tokens) {
        if (t.recompute != Recompute::none)
            warn_of_no_effect(plan, "recompute", std::string(to_string(t.recompute)),
                              "on a plain stack: it recomputes transformer layers");
    } else if (t.recompute == Recompute::selective && t.attention != AttentionKernel::eager) {
        plan.warnings.push_back(
            {"no_effect",
             fmt::format("recompute = selective saves no memory over none with {} attention, which "
                         "keeps no scores for backward; full does, at the price of another forward",
                         to_string(t.attention))});
    }
}

/// Every collective that the programs' steps have.
std::set<CollectiveKind> kinds_in_step(const Plan& plan) {
    std::set<CollectiveKind> kinds;
    for (const StepProgram& program : plan.programs)
        for (const Section& section : program.step)
            for (const Operation& operation : section.operations)
                if (const auto* collective = std::get_if<Collective>(&operation.body))
                    kinds.insert(collective->kind);
    return kinds;
}

/// Measured points say something of their own kind of collective alone (cost/measured_collectives.cpp).
void warn_of_useless_calibration(Plan& plan) {
    const Calibration& calibration = plan.scenario.cluster.calibration;
    if (calibration.collectives.empty() || !calibration.constants.empty() || calibration.ring) return;
    const std::set<CollectiveKind> used = kinds_in_step(plan);
    std::set<std::string_view> measured;
    for (const MeasuredPoint& point : calibration.collectives) {
        if (used.contains(point.kind)) return;
        measured.insert(to_string(point.kind));
    }
    plan.warnings.push_back(
        {"no_effect",
         fmt::format("calibration {} has no effect: no collective of this step is {} {}", calibration.source,
                     measured.begin()->starts_with('a') ? "an" : "a", fmt::join(measured, " or "))});
}

void warn_of_memory(Plan& plan) {
    const MemorySummary& memory = plan.memory;
    const RankGroup& worst = plan.rank_groups[memory.worst_group];
    const PhaseMemory& save = worst.phases.back();
    if (memory.verdict == Verdict::marginal)
        plan.warnings.push_back(
            {"marginal",
             fmt::format("the interval {} to {} spans the capacity {}: it may or may not fit",
                         format_gib(memory.low), format_gib(memory.high), format_gib(memory.capacity))});
    if (worst.wanted_reserved > worst.peak_reserved && memory.verdict == Verdict::marginal)
        plan.warnings.push_back(
            {"allocator_retries",
             fmt::format(
                 "PyTorch's allocator would reserve {} and has to give free segments back to stay "
                 "within {}, which stalls the GPU (num_alloc_retries counts it); a smaller "
                 "micro-batch{} avoids it",
                 format_gib(worst.wanted_reserved),
                 format_gib(memory.capacity - std::min(memory.capacity, worst.runtime)),
                 plan.scenario.training.allocator.expandable_segments
                     ? ""
                     : " or expandable_segments (--set /training/allocator/expandable_segments=true)")});
    if (save.peak_reserved + worst.runtime > memory.capacity && memory.verdict != Verdict::does_not_fit)
        plan.warnings.push_back(
            {"save_does_not_fit",
             fmt::format("training fits, but gathering a full checkpoint needs {} of {}",
                         format_gib(save.peak_reserved + worst.runtime), format_gib(memory.capacity))});
}

void warn_of_host(Plan& plan) {
    const Bytes capacity = plan.memory.host_capacity;
    const PhaseMemory* highest = nullptr;
    for (const RankGroup& group : plan.rank_groups)
        for (const PhaseMemory& phase : group.phases)
            if (highest == nullptr || phase.host_per_node > highest->host_per_node) highest = &phase;
    if (highest != nullptr && highest->host_per_node > capacity)
        plan.warnings.push_back(
            {"host_memory_does_not_fit",
             fmt::format("the processes of a node take {} of its {} of host memory in phase {}",
                         format_gib(highest->host_per_node), format_gib(capacity),
                         to_string(highest->phase))});
}

}  // namespace

void add_plan_warnings(Plan& plan) {
    for (const std::string& note : plan.scenario.model.notes)
        plan.warnings.push_back({"model_assumption", note});
    warn_of_memory(plan);
    warn_of_host(plan);
    warn_of_keys_without_effect(plan);
    warn_of_needless_recompute(plan);
    warn_of_useless_calibration(plan);
    add_engine_warnings(plan);
    warn_of_what_is_left_out(plan);
}

}  // namespace zeroplan
