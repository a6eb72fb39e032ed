#include <nlohmann/json.hpp>

#include "json/plan_to_json.hpp"
#include "json/scenario_to_json.hpp"
#include "json/sim_views_json.hpp"
#include "json/what_if_json.hpp"
#include "report/slowest_group.hpp"
#include "zeroplan/io.hpp"
#include "zeroplan/memory_interval.hpp"
#include "zeroplan/what_if_report.hpp"

namespace zeroplan {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const CategoryBytes& bytes) {
    ordered_json out;
    for (const Category category : all_categories)
        out[std::string(to_string(category))] = bytes[category].count();
    return out;
}

ordered_json to_json(const BytesInterval& interval) {
    return {{"low", interval.low.count()}, {"high", interval.high.count()}};
}

ordered_json to_json(const MemoryIntervals& intervals) {
    return {{"peak_allocated_bytes", to_json(intervals.allocated)},
            {"peak_active_bytes", to_json(intervals.active)},
            {"peak_reserved_bytes", to_json(intervals.reserved)},
            {"peak_device_bytes", to_json(intervals.device)},
            {"resident_bytes", to_json(intervals.resident)}};
}

ordered_json to_json(const RankGroup& group, AllocatorKind allocator) {
    ordered_json out;
    out["ranks"] = to_string(group.ranks);
    out["peak_allocated_bytes"] = group.steady.allocated.count();
    out["peak_active_bytes"] = group.peak_active.count();
    out["peak_reserved_bytes"] = group.peak_reserved.count();
    out["peak_device_bytes"] = group.peak_device.count();
    out["resident_bytes"] = group.resident.count();
    out["runtime_bytes"] = group.runtime.count();
    out["intervals"] = to_json(memory_intervals(group, allocator));
    out["at_peak"] = to_json(group.steady.at_peak);
    return out;
}

ordered_json phases_to_json(const RankGroup& group) {
    ordered_json out = ordered_json::array();
    for (const PhaseMemory& phase : group.phases)
        out.push_back({{"phase", to_string(phase.phase)},
                       {"peak_allocated_bytes", phase.peak_allocated.count()},
                       {"peak_reserved_bytes", phase.peak_reserved.count()},
                       {"host_bytes_per_node", phase.host_per_node.count()}});
    return out;
}

ordered_json memory_to_json(const Plan& plan) {
    const MemorySummary& memory = plan.memory;
    const RankGroup& worst = plan.rank_groups.at(memory.worst_group);
    ordered_json out;
    out["peak_allocated_bytes"] = worst.steady.allocated.count();
    out["peak_active_bytes"] = worst.peak_active.count();
    out["peak_reserved_bytes"] = worst.peak_reserved.count();
    out["peak_device_bytes"] = worst.peak_device.count();
    out["overall_peak_device_bytes"] = memory.overall_peak_device.count();
    out["capacity_bytes"] = memory.capacity.count();
    out["low_bytes"] = memory.low.count();
    out["high_bytes"] = memory.high.count();
    out["verdict"] = to_string(memory.verdict);
    out["peak_rank"] = memory.peak_rank;
    out["peak_phase"] = to_string(memory.peak_phase);
    out["peak_operation"] = memory.peak_operation;
    out["rank_groups"] = ordered_json::array();
    for (const RankGroup& group : plan.rank_groups)
        out["rank_groups"].push_back(to_json(group, plan.allocator));
    out["phases"] = phases_to_json(worst);
    out["host"] = {{"per_node_bytes", memory.host_per_node.count()},
                   {"capacity_bytes", memory.host_capacity.count()}};
    return out;
}

ordered_json communication_to_json(const Plan& plan) {
    const CommunicationVolume total = total_communication(plan);
    ordered_json by_kind = ordered_json::object();
    for (const auto& [kind, volume] : plan.communication) {
        by_kind[kind] = {{"operations", volume.operations},
                         {"bytes_per_rank", volume.bytes_per_rank.count()},
                         {"buffer_bytes", volume.buffer_bytes.count()}};
    }
    return {{"bytes_per_rank", total.bytes_per_rank.count()},
            {"buffer_bytes", total.buffer_bytes.count()},
            {"operations", total.operations},
            {"by_kind", by_kind}};
}

ordered_json warnings_to_json(const Plan& plan) {
    ordered_json out = ordered_json::array();
    for (const Warning& warning : plan.warnings)
        out.push_back({{"code", warning.code}, {"message", warning.message}});
    return out;
}

ordered_json constants_to_json(const Plan& plan) {
    ordered_json out = ordered_json::array();
    for (const Constant& constant : plan.constants)
        out.push_back({{"name", constant.name},
                       {"value", constant.value},
                       {"unit", constant.unit},
                       {"kind", constant.kind},
                       {"source", constant.source}});
    return out;
}

ordered_json remedies_to_json(const Plan& plan) {
    ordered_json out = ordered_json::array();
    for (const Remedy& remedy : plan.remedies) {
        ordered_json row = {{"flags", remedy.flags},
                            {"price", remedy.price},
                            {"overall_peak_device_bytes", remedy.overall_peak_device.count()},
                            {"capacity_bytes", remedy.capacity.count()},
                            {"verdict", to_string(remedy.verdict)},
                            {"needs_hardware", remedy.needs_hardware}};
        row["step_time_ratio"] =
            remedy.step_time_ratio ? ordered_json(*remedy.step_time_ratio) : ordered_json(nullptr);
        out.push_back(std::move(row));
    }
    return out;
}

ordered_json links_to_json(const SimReport& report) {
    ordered_json out = ordered_json::array();
    for (const LinkLoad& link : report.links)
        out.push_back({{"name", link.name},
                       {"links", link.links},
                       {"capacity_bytes_per_s", link.bytes_per_s},
                       {"bytes", link.bytes},
                       {"utilisation", link.utilisation}});
    return out;
}

ordered_json step_times_to_json(const Plan& plan, const SimReport& report) {
    ordered_json out = ordered_json::array();
    for (std::size_t g = 0; g < report.rank_groups.size() && g < plan.rank_groups.size(); ++g) {
        const StepTimeline& step = report.rank_groups[g];
        out.push_back({{"ranks", to_string(plan.rank_groups[g].ranks)},
                       {"step_time_s", step.step_time_s},
                       {"compute_s", step.compute_s},
                       {"slowed_s", step.slowed_s},
                       {"communication_s", step.communication_s},
                       {"exposed_communication_s", step.exposed_communication_s},
                       {"offload_s", step.offload_s},
                       {"exposed_offload_s", step.exposed_offload_s},
                       {"bubble_s", step.bubble_s}});
    }
    return out;
}

ordered_json to_json(const WhatIfReport& report) {
    ordered_json out = {{"step_time_without_s", report.step_time_without_s},
                        {"causes", ordered_json::array()}};
    for (const StepCause& cause : report.causes)
        out["causes"].push_back(
            {{"cause", cause.cause},
             {"step_time_s", cause.step_time_s},
             {"added_s", cause.added_s},
             {"added_exposed_wait_s", cause.added_exposed_communication_s + cause.added_idle_s},
             {"added_exposed_communication_s", cause.added_exposed_communication_s},
             {"added_idle_s", cause.added_idle_s}});
    if (report.waited_for)
        out["waited_for"] = {{"ranks", to_string(report.waited_for->ranks)},
                             {"last_of", report.waited_for->last_of},
                             {"collectives", report.waited_for->collectives},
                             {"waiting_s", report.waited_for->waiting_s}};
    if (report.background) {
        const NeighbourJob& other = *report.background;
        out["background"] = {
            {"name", other.name}, {"ranks", other.ranks}, {"step_time_alone_s", other.step_time_alone_s}};
        out["background"]["step_time_s"] =
            other.step_time_s ? ordered_json(*other.step_time_s) : ordered_json(nullptr);
    }
    return out;
}

ordered_json to_json(const Goodput& run, double step_time_s) {
    ordered_json out = {{"mtbf_s", run.mtbf_s},
                        {"checkpoint_bytes", run.checkpoint_bytes},
                        {"checkpoint_s", run.checkpoint_s},
                        {"restart_s", run.restart_s},
                        {"checkpoint_interval_s", run.interval_s},
                        {"goodput", run.goodput}};
    out["step_time_with_failures_s"] =
        run.goodput > 0 ? ordered_json(step_time_s / run.goodput) : ordered_json();
    out["intervals"] = ordered_json::array();
    const auto add = [&out](const char* name, double interval_s, double goodput) {
        out["intervals"].push_back(
            {{"rule", name}, {"checkpoint_interval_s", interval_s}, {"goodput", goodput}});
    };
    if (run.interval_is_given) add("given", run.interval_s, run.goodput);
    add("best", run.best_interval_s, run.best_goodput);
    add("daly", run.daly_interval_s, run.daly_goodput);
    add("young", run.young_interval_s, run.young_goodput);
    return out;
}

ordered_json to_json(const RankMeasurement& rank) {
    ordered_json out;
    out["rank"] = rank.rank;
    out["peak_allocated_bytes"] = rank.peak_allocated.count();
    out["at_peak"] = to_json(rank.at_peak);
    out["resident_bytes"] = rank.resident.count();
    out["process_peak_bytes"] = rank.process_peak.count();
    out["process_peak_planned_bytes"] = rank.process_peak_planned.count();
    out["device_peak_bytes"] =
        rank.device_peak ? ordered_json(rank.device_peak->count()) : ordered_json(nullptr);
    return out;
}

}  // namespace

ordered_json plan_to_json(const Plan& plan) {
    const ModelSpec& model = plan.scenario.model;
    ordered_json out;
    out["schema"] = 1;
    out["kind"] = "plan";
    out["scenario"] = scenario_to_json(plan.scenario);
    out["rule_set"] = plan.rule_set;
    out["model"] = {{"name", model.name},
                    {"architecture", model.architecture},
                    {"parameters", model.parameter_count()},
                    {"trainable_parameters", model.trainable_parameter_count()},
                    {"active_parameters", model.active_parameter_count()}};
    out["world_size"] = plan.scenario.world_size();
    out["memory"] = memory_to_json(plan);
    out["communication"] = communication_to_json(plan);
    out["warnings"] = warnings_to_json(plan);
    if (plan.memory.verdict == Verdict::does_not_fit) out["remedies"] = remedies_to_json(plan);
    out["constants"] = constants_to_json(plan);
    return out;
}

std::string plan_json(const Plan& plan, int indent) {
    return plan_to_json(plan).dump(indent);
}

std::string sim_json(const Plan& plan, const SimReport& report, int indent) {
    return sim_json(plan, report, SimExtras{}, indent);
}

std::string sim_json(const Plan& plan, const SimReport& report, const SimExtras& extras, int indent) {
    const StepTimeline& slowest = slowest_group(report);
    ordered_json out = plan_to_json(plan);
    out["kind"] = "sim";
    out["step_time_s"] = slowest.step_time_s;
    out["tokens_per_s_per_gpu"] = report.throughput.tokens_per_s_per_gpu;
    out["model_flops_per_s_per_gpu"] = report.throughput.model_flop_per_s_per_gpu;
    out["mfu"] = report.throughput.mfu;
    out["hardware_flops_per_s_per_gpu"] = report.throughput.hardware_flop_per_s_per_gpu;
    out["hfu"] = report.throughput.hfu;
    out["compute_s"] = slowest.compute_s;
    out["slowed_s"] = slowest.slowed_s;
    out["communication_s"] = slowest.communication_s;
    out["exposed_communication_s"] = slowest.exposed_communication_s;
    out["offload_s"] = slowest.offload_s;
    out["exposed_offload_s"] = slowest.exposed_offload_s;
    out["bubble_s"] = slowest.bubble_s;
    out["low_s"] = slowest.low_s;
    out["high_s"] = slowest.high_s;
    out["fidelity"] = slowest.fidelity;
    out["closed_form_step_time_s"] = report.closed_form.step_time_s;
    out["step_times"] = step_times_to_json(plan, report);
    out["exposed_by_cause"] = exposed_by_cause_json(plan, report);
    out["critical_path"] = critical_path_json(plan, report);
    out["collectives"] = collectives_json(plan, report);
    out["links"] = links_to_json(report);
    if (extras.goodput) out["failures"] = to_json(*extras.goodput, slowest.step_time_s);
    if (extras.what_if) {
        out["scenario"]["what_if"] = what_if_to_json(extras.what_if->asked);
        out["what_if"] = to_json(*extras.what_if);
    }
    out["wall_s"] = report.wall_s;
    return out.dump(indent);
}

std::string run_json(const Plan& plan, const RunReport& report, int indent) {
    ordered_json out;
    out["schema"] = 1;
    out["kind"] = "run";
    out["backend"] = report.backend;
    out["world_size"] = report.world_size;
    out["losses"] = report.losses;
    out["step_times_s"] = report.step_times_s;
    if (report.steps_per_epoch > 0) out["steps_per_epoch"] = report.steps_per_epoch;
    out["final_parameters_sha256"] = report.final_parameters_sha256;
    out["wall_s"] = report.wall_s;
    out["ranks"] = ordered_json::array();
    for (const RankMeasurement& rank : report.ranks) out["ranks"].push_back(to_json(rank));
    out["plan"] = plan_to_json(plan);
    out["agreement"] = ordered_json::array();
    for (const Agreement& row : agreement(plan, report))
        out["agreement"].push_back({{"rank", row.rank},
                                    {"category", to_string(row.category)},
                                    {"planned_bytes", row.planned.count()},
                                    {"measured_bytes", row.measured.count()}});
    return out.dump(indent);
}

}  // namespace zeroplan
