#include "report/plan_parts.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "report/size_unit.hpp"

namespace zeroplan {
namespace {

/// "63.10 of 79.11 GiB (67.75 of 84.94 GB)", or each in its own unit where they are far apart.
std::string used_of(Bytes used, Bytes capacity) {
    if (used < Bytes{capacity.count() / 100})
        return fmt::format("{} of {}", format_bytes(used), format_bytes(capacity));
    const SizeUnit unit = unit_for(std::max(used, capacity));
    return fmt::format("{} of {} {} ({} of {} {})", unit.in_binary(used), unit.in_binary(capacity),
                       unit.binary, unit.in_decimal(used), unit.in_decimal(capacity), unit.decimal);
}

/// A what-if splits ranks by their times, not by their memory.
bool all_hold_the_same(const Plan& plan) {
    const RankGroup& first = plan.rank_groups.front();
    return std::all_of(plan.rank_groups.begin(), plan.rank_groups.end(), [&](const RankGroup& group) {
        return group.wanted_reserved == first.wanted_reserved && group.peak_device == first.peak_device;
    });
}

std::string where(const Plan& plan) {
    const bool host = plan.scenario.cluster.gpu.is_host;
    if (all_hold_the_same(plan))
        return plan.scenario.world_size() == 1 ? (host ? "on the one rank" : "on the one GPU")
                                               : (host ? "on every rank" : "on every GPU");
    return "on the fullest, " + ranks_in_words(plan.rank_groups[plan.memory.worst_group].ranks);
}

std::string dtypes_in_words(const TrainingConfig& t) {
    std::string text(to_string(t.compute_dtype));
    if (t.parameter_dtype != t.compute_dtype)
        text += fmt::format(", {} parameters", to_string(t.parameter_dtype));
    if (t.master_dtype) text += fmt::format(" with {} master weights", to_string(*t.master_dtype));
    if (t.gradient_dtype != t.compute_dtype)
        text += fmt::format(", {} gradients", to_string(t.gradient_dtype));
    return text;
}

std::string sharding_in_words(const TrainingConfig& t) {
    if (t.zero_stage == 0) return fmt::format("ZeRO 0 (nothing sharded), {} data-parallel", t.data_parallel);
    const std::uint64_t replicas = t.data_parallel * t.context_parallel / t.shard_group;
    std::string text = fmt::format("ZeRO {} over {} ranks", t.zero_stage, t.shard_group);
    if (replicas > 1) text += fmt::format(", {} replicas", replicas);
    return text;
}

/// Degrees above 1, as " · tensor parallel 2".
std::string degrees_in_words(const TrainingConfig& t) {
    std::string text;
    for (const auto& [name, degree] : {std::pair{"tensor", t.tensor_parallel},
                                       {"pipeline", t.pipeline_parallel},
                                       {"context", t.context_parallel},
                                       {"expert", t.expert_parallel}})
        if (degree > 1) text += fmt::format(", {} parallel {}", name, degree);
    return text;
}

std::string batch_in_words(const Plan& plan) {
    const TrainingConfig& t = plan.scenario.training;
    const bool tokens = plan.scenario.model.batch == BatchKind::tokens;
    std::string text = tokens ? fmt::format("micro-batch {} × {} tokens", t.micro_batch_size,
                                            format_count(t.sequence_length))
                              : fmt::format("micro-batch {} samples", t.micro_batch_size * t.sequence_length);
    if (t.gradient_accumulation_steps > 1)
        text += fmt::format(", {} of them a step", t.gradient_accumulation_steps);
    if (!tokens) return text;
    text += fmt::format(", {} attention", to_string(t.attention));
    return text + (t.recompute == Recompute::none ? ", no recompute"
                                                  : fmt::format(", recompute {}", to_string(t.recompute)));
}

std::string cluster_in_words(const ClusterSpec& c) {
    std::string text = c.topology.empty() ? "" : c.topology + ": ";
    const char* unit = c.gpu.is_host ? "process" : "GPU";
    text += fmt::format("{} node{} × {} × {}", c.nodes, c.nodes == 1 ? "" : "s", c.gpus_per_node, c.gpu.name);
    const std::uint64_t used = c.gpus_used;
    if (used == c.nodes * c.gpus_per_node) return text + fmt::format(", all {} used", used);
    return text + fmt::format(", {} {}{} used", used, unit, used == 1 ? "" : c.gpu.is_host ? "es" : "s");
}

std::string value_of(const Constant& constant) {
    if (constant.unit == "B")
        return format_gib(Bytes{static_cast<std::uint64_t>(std::max(constant.value, 0.0))});
    if (constant.unit == "s") return format_seconds(constant.value);
    if (constant.unit == "B/s") return fmt::format("{:.4g} GB/s", constant.value / 1e9);
    return constant.unit == "1" ? fmt::format("{:.6g}", constant.value)
                                : fmt::format("{:.6g} {}", constant.value, constant.unit);
}

/// Says no more than the changes' own verdicts do: a marginal plan may fit or not.
const char* remedies_title(const std::vector<Remedy>& remedies) {
    const auto count = [&](Verdict verdict) {
        return std::count_if(remedies.begin(), remedies.end(),
                             [&](const Remedy& remedy) { return remedy.verdict == verdict; });
    };
    if (count(Verdict::does_not_fit) > 0)
        return "no change and no two together make it fit; what comes closest:";
    if (count(Verdict::marginal) == 0) return "each of these makes it fit, the cheapest first:";
    if (count(Verdict::fits) == 0) return "no change makes it fit for sure; with each of these it may:";
    return "each of these makes it fit or, where it says so, may fit, the cheapest first:";
}

}  // namespace

std::string in_words(std::string_view snake_case) {
    std::string text(snake_case);
    std::replace(text.begin(), text.end(), '_', ' ');
    return text;
}

std::string ranks_in_words(const std::vector<RankRange>& ranks) {
    const bool one = ranks.size() == 1 && ranks.front().first == ranks.front().last;
    return (one ? "rank " : "ranks ") + to_string(ranks);
}

const RankGroup& group_of(const Plan& plan, std::uint64_t rank) {
    for (const RankGroup& group : plan.rank_groups)
        for (const RankRange& range : group.ranks)
            if (range.first <= rank && rank <= range.last) return group;
    throw Error(ErrorCode::invalid_input, fmt::format("rank {} is not in the plan, which has {} ranks", rank,
                                                      plan.scenario.world_size()));
}

void add_verdict(TextPage& page, const Plan& plan) {
    const MemorySummary& m = plan.memory;
    const std::string used = used_of(m.overall_peak_device, m.capacity) + " of device memory " + where(plan);
    switch (m.verdict) {
        case Verdict::fits:
            page.line(
                fmt::format("fits: {}, {} headroom", used, format_gib(m.capacity - m.overall_peak_device)),
                Colour::green);
            return;
        case Verdict::marginal:
            page.line(fmt::format("marginal: {}", used), Colour::yellow);
            return;
        case Verdict::does_not_fit:
            page.line(
                fmt::format("does not fit: {}, {} too much", used,
                            format_gib(m.overall_peak_device - std::min(m.capacity, m.overall_peak_device))),
                Colour::red);
            return;
    }
}

void add_remedies(TextPage& page, const Plan& plan) {
    if (plan.remedies.empty()) return;
    page.line(remedies_title(plan.remedies));
    std::vector<std::pair<std::string, std::string>> rows;  // flags, memory
    std::size_t flags_width = 0, memory_width = 0;
    for (const Remedy& remedy : plan.remedies) {
        rows.emplace_back(remedy.flags, fmt::format("{} of {}", format_gib(remedy.overall_peak_device),
                                                    format_gib(remedy.capacity)));
        flags_width = std::max(flags_width, rows.back().first.size());
        memory_width = std::max(memory_width, rows.back().second.size());
    }
    for (std::size_t i = 0; i < rows.size(); ++i)
        page.paragraph(
            fmt::format("  {:<{}}  {:>{}}  ", rows[i].first, flags_width, rows[i].second, memory_width),
            plan.remedies[i].verdict == Verdict::marginal ? "may fit; " + plan.remedies[i].price
                                                          : plan.remedies[i].price);
}

void add_scenario(TextPage& page, const Plan& plan) {
    const ModelSpec& model = plan.scenario.model;
    const TrainingConfig& t = plan.scenario.training;
    std::string about = fmt::format("{}, {} parameters", model.name, format_count(model.parameter_count()));
    if (!model.architecture.empty()) about += fmt::format(" ({})", model.architecture);
    if (model.active_parameter_count() != model.parameter_count())
        about += fmt::format(", {} active for a token", format_count(model.active_parameter_count()));
    if (model.trainable_parameter_count() != model.parameter_count())
        about += fmt::format(", {} trainable", format_count(model.trainable_parameter_count()));
    page.line("");
    page.paragraph("model     ", about, Colour::dim);
    page.paragraph("training  ",
                   fmt::format("engine {}, {}{}, {}, {}", to_string(t.engine), sharding_in_words(t),
                               degrees_in_words(t), dtypes_in_words(t), to_string(t.optimizer)),
                   Colour::dim);
    page.paragraph("step      ", batch_in_words(plan), Colour::dim);
    page.paragraph("cluster   ", cluster_in_words(plan.scenario.cluster), Colour::dim);
}

void add_warnings(TextPage& page, const Plan& plan) {
    if (plan.warnings.empty()) return;
    page.heading("Warnings");
    for (const Warning& warning : plan.warnings)
        page.paragraph(fmt::format("  {}: ", in_words(warning.code)), warning.message, Colour::yellow);
}

void add_trust(TextPage& page, const Plan& plan) {
    page.heading("Where the figures come from");
    page.paragraph(
        "  exact: ",
        fmt::format("allocated bytes of every category, by rule set {}: every allocation of the step is "
                    "accounted",
                    plan.rule_set));
    constexpr std::array kinds{std::pair{"exact rule", "  exact: "},
                               std::pair{"calibrated constant", "  calibrated: "},
                               std::pair{"assumption", "  assumed: "}};
    for (const auto& [kind, label] : kinds)
        for (const Constant& constant : plan.constants)
            if (constant.kind == kind)
                page.paragraph(label, fmt::format("{} = {} ({})", in_words(constant.name), value_of(constant),
                                                  constant.source));
}

}  // namespace zeroplan
