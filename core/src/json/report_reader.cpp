#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "json/object_reader.hpp"
#include "json/parse.hpp"
#include "zeroplan/category.hpp"
#include "zeroplan/compare.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();

/// Reports hold more than is read here: unknown keys are nobody's mistake.
ObjectReader required_object(const ObjectReader& parent, const char* key) {
    if (auto object = parent.object(key)) return *object;
    parent.fail(key, fmt::format("the report has no \"{}\"", key), "is it a complete report of zeroplan?");
}

const json& required_list(const ObjectReader& parent, const char* key) {
    const json* list = parent.find(key);
    if (list == nullptr || !list->is_array())
        parent.fail(key, fmt::format("the report has no list \"{}\"", key),
                    "is it a complete report of zeroplan?");
    return *list;
}

void add_count(std::vector<Figure>& figures, const ObjectReader& object, const char* section,
               const char* what, const char* key, const char* unit = "B") {
    if (const auto count = object.integer(key, 0, largest))
        figures.push_back({section, what, unit, static_cast<double>(*count)});
}

void add_number(std::vector<Figure>& figures, const ObjectReader& object, const char* section,
                const char* what, const char* key, const char* unit) {
    if (const auto number = object.number(key, -std::numeric_limits<double>::max()))
        figures.push_back({section, what, unit, *number});
}

std::uint64_t rank_number(const ObjectReader& group, std::string_view text) {
    std::uint64_t number = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size())
        group.fail("ranks", fmt::format("\"{}\" is no rank", text), "ranks are written as 0-6,8");
    return number;
}

/// The inverse of to_string(ranks): "0-6,8".
std::vector<RankRange> read_ranks(const ObjectReader& group) {
    const std::string text = group.string("ranks").value_or("");
    std::vector<RankRange> ranks;
    std::string_view rest = text;
    for (;;) {
        const std::string_view range = rest.substr(0, rest.find(','));
        const auto dash = range.find('-');
        const std::uint64_t first = rank_number(group, range.substr(0, dash));
        const std::uint64_t last = dash == range.npos ? first : rank_number(group, range.substr(dash + 1));
        ranks.push_back({first, last});
        if (range.size() == rest.size()) return ranks;
        rest.remove_prefix(range.size() + 1);
    }
}

void add_at_peak(std::vector<Figure>& figures, const ObjectReader& object) {
    const ObjectReader at_peak = required_object(object, "at_peak");
    for (const Category category : all_categories) {
        std::string what(to_string(category));
        std::replace(what.begin(), what.end(), '_', ' ');
        if (const auto bytes = at_peak.integer(to_string(category), 0, largest))
            figures.push_back({"memory", what, "B", static_cast<double>(*bytes)});
    }
}

void add_memory(ComparableReport& report, const ObjectReader& plan) {
    const ObjectReader memory = required_object(plan, "memory");
    add_count(report.figures, memory, "memory", "device, overall peak", "overall_peak_device_bytes");
    add_count(report.figures, memory, "memory", "device, low end", "low_bytes");
    add_count(report.figures, memory, "memory", "device, high end", "high_bytes");
    add_count(report.figures, memory, "memory", "capacity", "capacity_bytes");
    if (const auto host = memory.object("host"))
        add_count(report.figures, *host, "memory", "host RAM of a node", "per_node_bytes");
    std::size_t index = 0;
    for (const json& element : required_list(memory, "rank_groups")) {
        const ObjectReader group(element,
                                 {plan.place().file, fmt::format("/memory/rank_groups/{}", index++)});
        RankFigures ranks{read_ranks(group), {}};
        add_at_peak(ranks.figures, group);
        add_count(ranks.figures, group, "memory", "allocated", "peak_allocated_bytes");
        add_count(ranks.figures, group, "memory", "reserved", "peak_reserved_bytes");
        add_count(ranks.figures, group, "memory", "device", "peak_device_bytes");
        add_count(ranks.figures, group, "memory", "between steps", "resident_bytes");
        report.ranks.push_back(std::move(ranks));
    }
}

void add_communication(ComparableReport& report, const ObjectReader& plan) {
    const auto communication = plan.object("communication");
    if (!communication) return;
    add_count(report.figures, *communication, "communication", "operations", "operations", "1");
    add_count(report.figures, *communication, "communication", "sent by a rank", "bytes_per_rank");
    add_count(report.figures, *communication, "communication", "buffers", "buffer_bytes");
}

void add_sim(ComparableReport& report, const ObjectReader& sim) {
    add_number(report.figures, sim, "time", "step time", "step_time_s", "s");
    add_number(report.figures, sim, "time", "computing", "compute_s", "s");
    add_number(report.figures, sim, "time", "communicating", "communication_s", "s");
    add_number(report.figures, sim, "time", "exposed communication", "exposed_communication_s", "s");
    add_number(report.figures, sim, "time", "idle", "bubble_s", "s");
    add_number(report.figures, sim, "time", "tokens a second and GPU", "tokens_per_s_per_gpu", "1/s");
    add_number(report.figures, sim, "time", "MFU", "mfu", "1");
}

std::vector<double> numbers(const ObjectReader& object, const char* key) {
    std::vector<double> values;
    for (const json& value : required_list(object, key)) {
        // A loss that is no number is written as null; comparing it says nothing.
        if (!value.is_number() && !value.is_null())
            object.fail(key, fmt::format("\"{}\" must hold numbers", key));
        if (value.is_number()) values.push_back(value.get<double>());
    }
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

void add_run(ComparableReport& report, const ObjectReader& run) {
    std::vector<double> times = numbers(run, "step_times_s");
    if (!times.empty()) {
        std::sort(times.begin(), times.end());
        report.figures.push_back({"time", "step time", "s", times[times.size() / 2]});
    }
    report.losses = numbers(run, "losses");
    const std::vector<double>& losses = report.losses;
    report.figures.push_back({"training", "steps", "1", static_cast<double>(losses.size())});
    if (!losses.empty()) {
        report.figures.push_back({"training", "first loss", "1", losses.front()});
        report.figures.push_back({"training", "last loss", "1", losses.back()});
    }
    report.final_parameters_sha256 = run.string("final_parameters_sha256").value_or("");
    std::size_t index = 0;
    for (const json& element : required_list(run, "ranks")) {
        const ObjectReader rank(element, {run.place().file, fmt::format("/ranks/{}", index++)});
        std::vector<Figure> figures;
        add_at_peak(figures, rank);
        add_count(figures, rank, "memory", "allocated", "peak_allocated_bytes");
        add_count(figures, rank, "memory", "between steps", "resident_bytes");
        add_rank(report, rank.integer("rank").value_or(index - 1), std::move(figures));
    }
}

/// Every leaf of the scenario with its pointer.
void flatten(const json& value, const std::string& pointer, ComparableReport& report) {
    if (value.is_structured() && !value.empty()) {
        for (const auto& item : value.items()) flatten(item.value(), pointer + "/" + item.key(), report);
        return;
    }
    report.scenario.emplace_back(pointer, value.dump(-1, ' ', false, json::error_handler_t::replace));
}

void describe_scenario(ComparableReport& report, const ObjectReader& plan) {
    const ObjectReader scenario = required_object(plan, "scenario");
    for (const auto& item : scenario.value().items()) flatten(item.value(), "/" + item.key(), report);
    std::sort(report.scenario.begin(), report.scenario.end());
    const ObjectReader training = required_object(scenario, "training");
    const auto model = plan.object("model");
    report.summary = fmt::format(
        "{}, engine {}, ZeRO {}, {} ranks", model ? model->string("name").value_or("model") : "model",
        training.string("engine").value_or("?"), training.integer("zero_stage").value_or(0),
        plan.integer("world_size").value_or(0));
    add_count(report.figures, plan, "job", "ranks", "world_size", "1");
    if (model) add_count(report.figures, *model, "job", "parameters", "parameters", "1");
}

void check_kind(const ObjectReader& object, const std::string& kind) {
    if (kind != "plan" && kind != "sim" && kind != "run")
        object.fail("kind",
                    kind.empty() ? "this is no report: it has no \"kind\""
                                 : fmt::format("a report of kind \"{}\" can't be compared", kind),
                    "compare takes what zeroplan plan, sim or run wrote with --json");
    const std::uint64_t schema = object.integer("schema").value_or(1);
    if (schema != 1)
        object.fail("schema", fmt::format("schema {} is stated, this version reads schema 1", schema));
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
        describe_scenario(report, required_object(object, "plan"));
        add_run(report, object);
        return report;
    }
    describe_scenario(report, object);
    add_memory(report, object);
    add_communication(report, object);
    if (report.kind == "sim") add_sim(report, object);
    return report;
}

}  // namespace zeroplan
