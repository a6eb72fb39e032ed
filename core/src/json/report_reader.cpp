#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "json/object_reader.hpp"
#include "json/parse.hpp"
#include "json/pointer.hpp"
#include "json/report_promises.hpp"
#include "zeroplan/category.hpp"
#include "zeroplan/compare.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 3> verdicts{"fits", "marginal", "does_not_fit"};
constexpr std::array<std::string_view, 5> phases{"load", "init", "first_step", "steady_step", "save"};

std::string in_words(std::string_view key) {
    std::string words(key);
    std::replace(words.begin(), words.end(), '_', ' ');
    return words;
}

void add_count(std::vector<Figure>& figures, const ObjectReader& object, const char* section,
               std::string what, const char* key, const char* unit = "B") {
    figures.push_back({section, std::move(what), unit, static_cast<double>(required_count(object, key))});
}

void add_time(ComparableReport& report, const ObjectReader& sim, const char* what, const char* key,
              const char* unit = "s") {
    report.figures.push_back({"time", what, unit, required_number(sim, key)});
}

/// The elements of a list of objects, each knowing its place.
std::vector<ObjectReader> elements_of(const ObjectReader& parent, std::string_view key) {
    std::vector<ObjectReader> elements;
    const ErrorPlace list = parent.place(key);
    for (const json& element : required_list(parent, key))
        elements.emplace_back(
            element, ErrorPlace{list.file, child_pointer(list.pointer, std::to_string(elements.size()))});
    return elements;
}

void add_at_peak(std::vector<Figure>& figures, const ObjectReader& object) {
    const ObjectReader at_peak = required_object(object, "at_peak");
    for (const Category category : all_categories)
        figures.push_back({"memory", in_words(to_string(category)), "B",
                           static_cast<double>(required_count(at_peak, to_string(category)))});
}

/// Counters of a rank group, or of the worst one.
void add_counters(std::vector<Figure>& figures, const ObjectReader& object, const std::string& of) {
    add_count(figures, object, "memory", "allocated" + of, "peak_allocated_bytes");
    add_count(figures, object, "memory", "active" + of, "peak_active_bytes");
    add_count(figures, object, "memory", "reserved" + of, "peak_reserved_bytes");
    add_count(figures, object, "memory", "device" + of, "peak_device_bytes");
}

/// Reports of versions before intervals have none.
void add_intervals(std::vector<Figure>& figures, const ObjectReader& group) {
    if (!group.has("intervals")) return;
    const ObjectReader intervals = required_object(group, "intervals");
    for (const auto& [what, key] :
         {std::pair{"allocated", "peak_allocated_bytes"}, std::pair{"active", "peak_active_bytes"},
          std::pair{"reserved", "peak_reserved_bytes"}, std::pair{"device", "peak_device_bytes"},
          std::pair{"between steps", "resident_bytes"}}) {
        const ObjectReader interval = required_object(intervals, key);
        add_count(figures, interval, "memory", fmt::format("{}, low", what), "low");
        add_count(figures, interval, "memory", fmt::format("{}, high", what), "high");
    }
}

RankFigures read_rank_group(const ObjectReader& group, std::vector<RankRange> ranks) {
    RankFigures result{std::move(ranks), {}};
    add_at_peak(result.figures, group);
    add_counters(result.figures, group, "");
    add_count(result.figures, group, "memory", "between steps", "resident_bytes");
    add_count(result.figures, group, "memory", "outside the allocator", "runtime_bytes");
    add_intervals(result.figures, group);
    return result;
}

void add_rank_groups(ComparableReport& report, const ObjectReader& plan, const ObjectReader& memory) {
    const std::vector<ObjectReader> groups = elements_of(memory, "rank_groups");
    std::vector<std::vector<RankRange>> ranks;
    for (const ObjectReader& group : groups) ranks.push_back(read_ranks(group));
    std::vector<RankRange> all;
    for (const auto& ranges : ranks) all.insert(all.end(), ranges.begin(), ranges.end());
    check_every_rank_once(memory, "rank_groups", all, required_count(plan, "world_size", 1));
    for (std::size_t i = 0; i < groups.size(); ++i)
        report.ranks.push_back(read_rank_group(groups[i], std::move(ranks[i])));
}

void add_phases(ComparableReport& report, const ObjectReader& memory) {
    for (const ObjectReader& phase : elements_of(memory, "phases")) {
        const std::string name = in_words(required_word(phase, "phase", phases));
        add_count(report.figures, phase, "phases", name + ": allocated", "peak_allocated_bytes");
        add_count(report.figures, phase, "phases", name + ": host RAM of a node", "host_bytes_per_node");
    }
}

void add_memory(ComparableReport& report, const ObjectReader& plan) {
    const ObjectReader memory = required_object(plan, "memory");
    add_rank_groups(report, plan, memory);
    add_counters(report.figures, memory, ", worst rank");
    add_count(report.figures, memory, "memory", "device, overall peak", "overall_peak_device_bytes");
    add_count(report.figures, memory, "memory", "device, low end", "low_bytes");
    add_count(report.figures, memory, "memory", "device, high end", "high_bytes");
    add_count(report.figures, memory, "memory", "capacity", "capacity_bytes");
    report.verdict = required_word(memory, "verdict", verdicts);
    const std::uint64_t world = required_count(plan, "world_size"),
                        worst = required_count(memory, "peak_rank");
    if (worst >= world)
        memory.fail("peak_rank", fmt::format("the peak is said to be on rank {} of {} ranks", worst, world),
                    "ranks are counted from 0");
    required_word(memory, "peak_phase", phases);
    required_string(memory, "peak_operation");
    const ObjectReader host = required_object(memory, "host");
    add_count(report.figures, host, "memory", "host RAM of a node", "per_node_bytes");
    add_count(report.figures, host, "memory", "host RAM's capacity", "capacity_bytes");
    add_phases(report, memory);
}

void add_communication(ComparableReport& report, const ObjectReader& plan) {
    const ObjectReader communication = required_object(plan, "communication");
    const auto add = [&](const ObjectReader& volume, const std::string& of) {
        add_count(report.figures, volume, "communication", of + "operations", "operations", "1");
        add_count(report.figures, volume, "communication", of + "sent by a rank", "bytes_per_rank");
    };
    add(communication, "");
    add_count(report.figures, communication, "communication", "buffers", "buffer_bytes");
    const ObjectReader by_kind = required_object(communication, "by_kind");
    for (const auto& item : by_kind.value().items())
        add(required_object(by_kind, item.key()), in_words(item.key()) + ": ");
}

void add_sim(ComparableReport& report, const ObjectReader& sim) {
    add_time(report, sim, "step time", "step_time_s");
    add_time(report, sim, "step time, low end", "low_s");
    add_time(report, sim, "step time, high end", "high_s");
    add_time(report, sim, "computing", "compute_s");
    add_time(report, sim, "communicating", "communication_s");
    add_time(report, sim, "exposed communication", "exposed_communication_s");
    add_time(report, sim, "idle", "bubble_s");
    add_time(report, sim, "tokens a second and GPU", "tokens_per_s_per_gpu", "1/s");
    add_time(report, sim, "MFU", "mfu", "1");
    required_string(sim, "fidelity");
    required_number(sim, "wall_s");
}

/// The numbers of a list with as many elements as there were steps. A loss that is no number is written as
/// null; comparing it says nothing.
std::vector<double> numbers(const ObjectReader& object, const char* key, std::size_t& steps) {
    std::vector<double> values;
    const json& list = required_list(object, key);
    for (const json& value : list) {
        if (!value.is_number() && !value.is_null())
            object.fail(key, fmt::format("\"{}\" must hold numbers, but holds {}", key, shown(value)),
                        "is it a report of zeroplan?");
        if (value.is_number()) values.push_back(value.get<double>());
    }
    steps = list.size();
    return values;
}

/// Two rank reports that hold the same become one.
void add_rank(ComparableReport& report, std::uint64_t rank, std::vector<Figure> figures) {
    const auto same = std::find_if(report.ranks.begin(), report.ranks.end(),
                                   [&](const RankFigures& ranks) { return ranks.figures == figures; });
    if (same == report.ranks.end())
        report.ranks.push_back({{{rank, rank}}, std::move(figures)});
    else if (same->ranks.back().last + 1 == rank)
        same->ranks.back().last = rank;
    else
        same->ranks.push_back({rank, rank});
}

void add_ranks(ComparableReport& report, const ObjectReader& run) {
    std::vector<RankRange> all;
    for (const ObjectReader& rank : elements_of(run, "ranks")) {
        std::vector<Figure> figures;
        add_at_peak(figures, rank);
        add_count(figures, rank, "memory", "allocated", "peak_allocated_bytes");
        required_count(rank, "process_peak_bytes");
        if (rank.has("resident_bytes")) add_count(figures, rank, "memory", "between steps", "resident_bytes");
        if (rank.has("device_peak_bytes"))
            add_count(figures, rank, "memory", "device, measured", "device_peak_bytes");
        const std::uint64_t number = required_count(rank, "rank");
        all.push_back({number, number});
        add_rank(report, number, std::move(figures));
    }
    check_every_rank_once(run, "ranks", all, required_count(run, "world_size", 1));
}

void check_world(const ObjectReader& run) {
    const std::uint64_t ran = required_count(run, "world_size", 1),
                        planned = required_count(required_object(run, "plan"), "world_size", 1);
    if (ran != planned)
        run.fail("world_size", fmt::format("{} ranks ran, but the plan is for {}", ran, planned),
                 "a run report holds the plan that was run: was one of the two edited?");
}

void add_run(ComparableReport& report, const ObjectReader& run) {
    required_string(run, "backend");
    std::size_t timed = 0, steps = 0;
    std::vector<double> times = numbers(run, "step_times_s", timed);
    report.losses = numbers(run, "losses", steps);
    if (timed != steps)
        run.fail("step_times_s", fmt::format("{} steps have a time, and {} have a loss", timed, steps),
                 "every step has both: was the file cut or edited?");
    if (!times.empty()) {
        std::sort(times.begin(), times.end());
        report.figures.push_back({"time", "step time", "s", times[times.size() / 2]});
    }
    const std::vector<double>& losses = report.losses;
    report.figures.push_back({"training", "steps", "1", static_cast<double>(steps)});
    if (!losses.empty()) {
        report.figures.push_back({"training", "first loss", "1", losses.front()});
        report.figures.push_back({"training", "last loss", "1", losses.back()});
    }
    report.final_parameters_sha256 = required_string(run, "final_parameters_sha256");
    add_ranks(report, run);
    check_world(run);
    for (const ObjectReader& row : elements_of(run, "agreement"))
        for (const char* key : {"rank", "planned_bytes", "measured_bytes"}) required_count(row, key);
}

/// Every leaf of the scenario with its pointer.
void flatten(const json& value, const std::string& pointer, ComparableReport& report) {
    if (value.is_structured() && !value.empty()) {
        for (const auto& item : value.items()) flatten(item.value(), pointer + "/" + item.key(), report);
        return;
    }
    report.scenario.emplace_back(pointer, value.dump(-1, ' ', false, json::error_handler_t::replace));
}

void describe_scenario(ComparableReport& report, const ObjectReader& scenario) {
    for (const auto& item : scenario.value().items()) flatten(item.value(), "/" + item.key(), report);
    std::sort(report.scenario.begin(), report.scenario.end());
}

void describe_job(ComparableReport& report, const ObjectReader& plan, const ObjectReader& training) {
    const ObjectReader model = required_object(plan, "model");
    report.summary = fmt::format("{}, engine {}, ZeRO {}, {} ranks", model.string("name").value_or("model"),
                                 required_string(training, "engine"), required_count(training, "zero_stage"),
                                 required_count(plan, "world_size"));
    required_string(plan, "rule_set");
    required_list(plan, "warnings");
    add_count(report.figures, plan, "job", "ranks", "world_size", "1");
    add_count(report.figures, model, "job", "parameters", "parameters", "1");
    add_count(report.figures, model, "job", "trainable parameters", "trainable_parameters", "1");
    add_count(report.figures, model, "job", "active parameters", "active_parameters", "1");
}

void check_schema(const ObjectReader& object) {
    if (!object.has("schema")) return;  // required_count() says so when the rest is what it seems
    const std::uint64_t schema = *object.integer("schema");
    if (schema != 1)
        object.fail("schema", fmt::format("schema {} is stated, this version reads schema 1", schema),
                    "compare it with the version of zeroplan that wrote it, or write it again with this one");
}

void check_kind(const ObjectReader& object, const std::string& kind) {
    if (kind != "plan" && kind != "sim" && kind != "run")
        object.fail("kind",
                    kind.empty() ? "this is no report: it has no \"kind\""
                                 : fmt::format("a report of kind \"{}\" can't be compared", kind),
                    "compare takes what zeroplan plan, sim or run wrote with --json");
    check_schema(object);
}

/// A plan, or the plan in another report: where only its job matters, its figures are read to be checked.
void add_plan(ComparableReport& report, const ObjectReader& plan) {
    const ObjectReader scenario = required_object(plan, "scenario");
    const ObjectReader training = required_object(scenario, "training");
    check_schema(plan);
    add_memory(report, plan);
    add_communication(report, plan);
    required_count(plan, "schema");
    describe_scenario(report, scenario);
    describe_job(report, plan, training);
}

/// Of the plan of a run, what the run itself doesn't measure is checked and left out.
void add_plan_of_run(ComparableReport& report, const ObjectReader& run) {
    ComparableReport planned;
    add_plan(planned, required_object(run, "plan"));
    report.summary = std::move(planned.summary);
    report.scenario = std::move(planned.scenario);
    std::copy_if(planned.figures.begin(), planned.figures.end(), std::back_inserter(report.figures),
                 [](const Figure& figure) { return figure.section == "job"; });
}

}  // namespace

ComparableReport parse_report(std::string_view text, const std::string& file) {
    const json document = parse_json(text, file);
    const ObjectReader object(document, {file, ""});
    ComparableReport report;
    report.file = file;
    report.kind = object.string("kind").value_or("");
    check_kind(object, report.kind);
    if (report.kind == "run") {
        add_plan_of_run(report, object);
        add_run(report, object);
        return report;
    }
    add_plan(report, object);
    if (report.kind == "sim") add_sim(report, object);
    return report;
}

}  // namespace zeroplan
