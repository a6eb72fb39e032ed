#include "demo_page.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "report/plan_parts.hpp"
#include "report/size_unit.hpp"

namespace zeroplan::tool {
namespace {

std::string stage_name(std::size_t stage) {
    return fmt::format("ZeRO {}", stage);
}

std::optional<double> find_figure(const std::vector<Figure>& figures, std::string_view section,
                                  std::string_view what) {
    for (const Figure& figure : figures)
        if (figure.section == section && figure.what == what) return figure.value;
    return std::nullopt;
}

std::string time_figure(const PlannedStage& stage, std::string_view what, std::string (*format)(double)) {
    if (!stage.simulated) return "–";
    const auto value = find_figure(stage.simulated->figures, "time", what);
    return value ? format(*value) : "–";
}

std::vector<std::string> planned_row(std::size_t number, const PlannedStage& stage, const SizeUnit& unit) {
    const RankGroup& fullest = stage.plan.rank_groups.at(stage.plan.memory.worst_group);
    const CategoryBytes& at_peak = fullest.steady.at_peak;
    const Bytes optimizer = at_peak[Category::master_weights] + at_peak[Category::optimizer_states];
    const Bytes activations = at_peak[Category::activations] + at_peak[Category::logits];
    const Bytes named =
        at_peak[Category::parameters] + at_peak[Category::gradients] + optimizer + activations;
    return {stage_name(number),
            unit.in_binary(at_peak[Category::parameters]),
            unit.in_binary(at_peak[Category::gradients]),
            unit.in_binary(optimizer),
            unit.in_binary(activations),
            unit.in_binary(fullest.peak_device - named),
            unit.in_binary(fullest.peak_device),
            in_words(to_string(stage.plan.memory.verdict)),
            time_figure(stage, "step time", format_seconds),
            time_figure(stage, "tokens a second and GPU", [](double x) { return fmt::format("{:.0f}", x); })};
}

/// Ranks whose memory is the same in every stage, with the first of them.
std::vector<std::pair<std::uint64_t, std::vector<RankRange>>> rank_classes(
    const std::vector<TrainedStage>& stages) {
    const auto group_number = [](const ComparableReport& report, std::uint64_t rank) {
        for (std::size_t g = 0; g < report.ranks.size(); ++g)
            for (const RankRange& range : report.ranks[g].ranks)
                if (range.first <= rank && rank <= range.last) return g;
        return report.ranks.size();
    };
    std::uint64_t world_size = 0;
    for (const RankFigures& group : stages.front().measured.ranks)
        for (const RankRange& range : group.ranks) world_size = std::max(world_size, range.last + 1);

    std::vector<std::pair<std::uint64_t, std::vector<RankRange>>> classes;
    std::vector<std::vector<std::size_t>> keys;
    for (std::uint64_t rank = 0; rank < world_size; ++rank) {
        std::vector<std::size_t> key;
        for (const TrainedStage& stage : stages) {
            key.push_back(group_number(stage.planned, rank));
            key.push_back(group_number(stage.measured, rank));
        }
        const auto known = static_cast<std::size_t>(std::find(keys.begin(), keys.end(), key) - keys.begin());
        if (known == keys.size()) {
            keys.push_back(key);
            classes.push_back({rank, {{rank, rank}}});
        } else if (auto& ranges = classes[known].second; ranges.back().last + 1 == rank) {
            ranges.back().last = rank;
        } else {
            ranges.push_back({rank, rank});
        }
    }
    return classes;
}

const std::vector<Figure>& figures_of(const ComparableReport& report, std::uint64_t rank) {
    for (const RankFigures& group : report.ranks)
        for (const RankRange& range : group.ranks)
            if (range.first <= rank && rank <= range.last) return group.figures;
    throw Error(ErrorCode::run_failed, fmt::format("{} says nothing of rank {}", report.file, rank));
}

std::size_t epoch_count(const ComparableReport& run) {
    for (const auto& [pointer, value] : run.scenario)
        if (pointer == "/run/epochs") return std::stoul(value);
    throw Error(ErrorCode::run_failed, "the run's report doesn't say how many epochs it trained");
}

/// Of all steps of an epoch: one step sees other samples than the next, so single losses scatter.
double mean_loss(const std::vector<double>& losses, std::size_t epoch, std::size_t epochs) {
    const std::size_t steps = losses.size() / epochs;
    if (steps == 0) throw Error(ErrorCode::run_failed, "the run has fewer steps than epochs");
    const auto first = losses.begin() + static_cast<std::ptrdiff_t>(epoch * steps);
    return std::accumulate(first, first + static_cast<std::ptrdiff_t>(steps), 0.0) /
           static_cast<double>(steps);
}

std::string bytes_text(std::optional<double> bytes) {
    return bytes ? fmt::format("{:.0f}", *bytes) : "–";
}

/// One row of planned and measured for every stage; empty if all are zero.
std::vector<std::string> memory_row(const std::string& what, const std::vector<TrainedStage>& stages,
                                    std::uint64_t rank) {
    std::vector<std::string> cells{what};
    bool any = false;
    for (const TrainedStage& stage : stages)
        for (const ComparableReport* report : {&stage.planned, &stage.measured}) {
            const auto bytes = find_figure(figures_of(*report, rank), "memory", what);
            any = any || (bytes && *bytes > 0);
            cells.push_back(bytes_text(bytes));
        }
    return any ? cells : std::vector<std::string>{};
}

}  // namespace

void add_planned_stages(TextPage& page, const std::vector<PlannedStage>& stages) {
    const Bytes capacity = stages.front().plan.memory.capacity;
    const SizeUnit unit = unit_for(capacity);
    Table table({unit.binary, "parameters", "gradients", "optimizer", "activations", "rest", "in all", "",
                 "step", "tokens/s/GPU"});
    table.left(7);
    for (std::size_t number = 0; number < stages.size(); ++number)
        table.row(planned_row(number, stages[number], unit));
    page.table(table);
    page.line(
        fmt::format("  of {} {} on each GPU, at the peak of a step", unit.in_binary(capacity), unit.binary),
        Colour::dim);
}

void add_losses(TextPage& page, const std::vector<TrainedStage>& stages) {
    const std::size_t epochs = epoch_count(stages.front().measured);
    std::set<std::size_t> shown{0};
    for (std::size_t epoch = 1; epoch < epochs; epoch += 2) shown.insert(epoch);

    std::vector<std::string> titles{"loss in epoch"};
    for (const std::size_t epoch : shown) titles.push_back(fmt::format("{}", epoch + 1));
    titles.emplace_back("final parameters, sha256");
    Table table(titles);
    std::set<std::string> digests;
    for (std::size_t number = 0; number < stages.size(); ++number) {
        const ComparableReport& measured = stages[number].measured;
        std::vector<std::string> cells{stage_name(number)};
        for (const std::size_t epoch : shown)
            cells.push_back(fmt::format("{:.6f}", mean_loss(measured.losses, epoch, epochs)));
        cells.push_back(measured.final_parameters_sha256.substr(0, 16) + "…");
        table.row(std::move(cells));
        digests.insert(measured.final_parameters_sha256);
    }
    page.table(table);
    if (digests.size() == 1)
        page.line("  The four stages end with the same parameters, bit for bit.", Colour::green);
    else
        page.line("  The stages end with different parameters: this is a mistake of zeroplan's.",
                  Colour::red);
}

void add_measured_memory(TextPage& page, const std::vector<TrainedStage>& stages) {
    std::size_t figures = 0, equal = 0;
    for (const auto& [rank, ranges] : rank_classes(stages)) {
        std::vector<std::string> titles{ranks_in_words(ranges)}, subtitles{"bytes"};
        for (std::size_t number = 0; number < stages.size(); ++number) {
            titles.insert(titles.end(), {stage_name(number), ""});
            subtitles.insert(subtitles.end(), {"planned", "measured"});
        }
        Table table(titles);
        table.row(subtitles).rule();
        const auto add = [&](const std::string& what) {
            const auto cells = memory_row(what, stages, rank);
            if (cells.empty()) return;
            table.row(cells);
            for (std::size_t i = 1; i + 1 < cells.size(); i += 2) {
                ++figures;
                if (cells[i] == cells[i + 1]) ++equal;
            }
        };
        for (const Category category : all_categories) add(in_words(to_string(category)));
        table.rule();
        add("allocated");
        add("between steps");
        page.table(table);
    }
    page.line(equal == figures ? fmt::format("  Planned and measured are equal in all {} figures.", figures)
                               : fmt::format("  Planned and measured differ in {} of {} figures.",
                                             figures - equal, figures),
              equal == figures ? Colour::green : Colour::red);
}

}  // namespace zeroplan::tool
