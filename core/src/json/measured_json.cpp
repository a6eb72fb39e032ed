#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cost/bus_factor.hpp"
#include "json/cluster_json.hpp"
#include "json/object_reader.hpp"
#include "json/parse.hpp"
#include "zeroplan/score.hpp"

namespace zeroplan {
namespace {

/// Calls `read` with every non-empty line as JSON; errors name file and line.
void for_each_line(std::string_view text, const std::string& file,
                   const std::function<void(const nlohmann::json&, ErrorPlace)>& read) {
    std::size_t line_number = 0;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        ++line_number;
        if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
        const std::string place = fmt::format("{}:{}", file, line_number);
        read(parse_json(line, place), {place, ""});
    }
}

Tier read_tier(const ObjectReader& reader, std::string_view key, const std::string& word) {
    for (const Tier tier : {Tier::a, Tier::b, Tier::c})
        if (word == to_string(tier)) return tier;
    reader.fail(key, fmt::format("unknown tier '{}'", word), "one of: A, B, C");
}

std::optional<Tier> optional_tier(const ObjectReader& reader, std::string_view key) {
    const auto word = reader.string(key);
    return word ? std::optional(read_tier(reader, key, *word)) : std::nullopt;
}

constexpr std::array<std::pair<std::string_view, Counter>, 7> counter_keys{
    {{"peak_allocated_bytes", Counter::allocated},
     {"peak_active_bytes", Counter::active},
     {"peak_reserved_bytes", Counter::reserved},
     {"peak_device_bytes", Counter::device},
     {"peak_unspecified_bytes", Counter::unspecified},
     {"resident_allocated_bytes", Counter::resident},
     {"step_time_s", Counter::time}}};

constexpr std::string_view case_keys[] = {"id",        "source", "scenario", "measured", "tier",
                                          "tier_time", "split",  "assumed",  "notes"};
constexpr std::string_view measured_keys[] = {"peak_allocated_bytes",
                                              "peak_active_bytes",
                                              "peak_reserved_bytes",
                                              "peak_device_bytes",
                                              "peak_unspecified_bytes",
                                              "resident_allocated_bytes",
                                              "ranks",
                                              "by_rank",
                                              "by_rank_counter",
                                              "step_time_s",
                                              "tokens_per_s_per_gpu",
                                              "model_flops_per_s_per_gpu",
                                              "mfu",
                                              "fits"};
constexpr std::string_view collective_keys[] = {"id",    "source",    "cluster",  "collective",
                                                "bytes", "algorithm", "measured", "tier",
                                                "split", "assumed",   "notes"};

std::string required_text(const ObjectReader& reader, std::string_view key, const char* hint) {
    auto text = reader.string(key);
    if (!text || text->empty()) reader.fail(key, fmt::format("\"{}\" is missing", key), hint);
    return *std::move(text);
}

ObjectReader required_part(const ObjectReader& reader, std::string_view key, const char* hint) {
    if (auto part = reader.object(key)) return *part;
    reader.fail(key, "is missing", hint);
}

/// No measurement of bytes, seconds or rates is beyond these, and shares of them stay numbers.
constexpr double least_measured = 1e-12, most_measured = 1e24;

/// An error is a share of what was measured, so that can't be 0, nor as good as 0.
std::optional<double> above_zero(const ObjectReader& reader, std::string_view key) {
    const auto value = reader.number(key);
    if (value == 0.0) reader.fail(key, fmt::format("\"{}\" must be above 0, but is 0", key));
    if (value && *value > 0 && (*value < least_measured || *value > most_measured))
        reader.fail(key, fmt::format("\"{}\" is {:g}, but measurements are from {:g} to {:g}", key, *value,
                                     least_measured, most_measured));
    return value;
}

/// What is there for people only, but for its type.
void check_remarks(const ObjectReader& reader) {
    reader.string("split");
    reader.string("notes");
    reader.strings("assumed");
}

/// Lines by id: every figure has to be told apart from the others.
class Ids {
public:
    std::string read(const ObjectReader& reader) {
        std::string id = required_text(reader, "id", "every line needs a name of its own");
        const auto [first, is_new] = lines_.emplace(id, reader.place().file);
        if (!is_new)
            reader.fail("id", fmt::format("\"{}\" is the id of {}, too", id, first->second),
                        "give every line a name of its own");
        return id;
    }

private:
    std::map<std::string, std::string> lines_;
};

void read_ranks(const ObjectReader& measured, MeasuredCase& out) {
    const nlohmann::json* ranks = measured.find("ranks");
    if (ranks == nullptr) return;
    constexpr const char* known =
        "all, first, last or a list of ranks; bytes of single ranks stand in by_rank";
    if (ranks->is_array()) {
        out.ranks = *measured.integers("ranks");
        if (out.ranks.empty()) measured.fail("ranks", "the list of ranks is empty", known);
        return;
    }
    if (!ranks->is_string()) measured.fail("ranks", fmt::format("{} are no ranks", shown(*ranks)), known);
    const std::string word = *measured.string("ranks");
    if (word == "first") {
        out.ranks = {0};
    } else if (word == "last") {
        out.last_rank = true;
    } else if (word != "all") {
        measured.fail("ranks", fmt::format("unknown ranks '{}'", word), known);
    }
}

std::uint64_t rank_of(const ObjectReader& by_rank, const std::string& key) {
    std::uint64_t rank = 0;
    const auto parsed = std::from_chars(key.data(), key.data() + key.size(), rank);
    if (parsed.ec != std::errc{} || parsed.ptr != key.data() + key.size())
        by_rank.fail(key, fmt::format("\"{}\" is no rank", key),
                     R"(as in {"0": 1073741824, "1": 1073741824})");
    return rank;
}

Counter read_by_rank_counter(const ObjectReader& measured) {
    std::vector<std::string_view> known;
    for (const auto& [key, counter] : counter_keys)
        if (counter != Counter::time) known.push_back(key);
    const std::string word =
        required_text(measured, "by_rank_counter", "it names the counter that by_rank's bytes are of");
    for (const auto& [key, counter] : counter_keys)
        if (word == key && counter != Counter::time) return counter;
    measured.fail_unknown_word("by_rank_counter", word, known);
}

void read_by_rank(const ObjectReader& measured, MeasuredCase& out) {
    const auto by_rank = measured.object("by_rank");
    if (!by_rank) {
        if (measured.has("by_rank_counter"))
            measured.fail("by_rank", "by_rank_counter is given, and by_rank is missing",
                          R"(as in {"0": 1073741824, "1": 1073741824})");
        return;
    }
    out.by_rank_counter = read_by_rank_counter(measured);
    for (const auto& item : by_rank->value().items()) {
        const auto bytes = above_zero(*by_rank, item.key());
        if (!bytes) by_rank->fail(item.key(), "the rank has no bytes", "leave out what isn't known");
        out.by_rank.push_back({rank_of(*by_rank, item.key()), *bytes});
    }
    std::sort(out.by_rank.begin(), out.by_rank.end(),
              [](const RankBytes& a, const RankBytes& b) { return a.rank < b.rank; });
    if (out.by_rank.empty()) measured.fail("by_rank", "by_rank has no rank", "leave it out");
}

/// The first of `keys` that is measured.
std::optional<std::string_view> first_of(const ObjectReader& measured,
                                         std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys)
        if (measured.has(key)) return key;
    return std::nullopt;
}

/// Without it a figure would be read, and scored nowhere.
void check_tier(const ObjectReader& reader, std::string_view tier, std::optional<std::string_view> figure) {
    if (figure && !reader.has(tier))
        reader.fail(tier, fmt::format("\"{}\" is measured, and the case has no \"{}\"", *figure, tier),
                    "A: everything that matters is known, B: something is assumed, C: not to be scored");
}

void check_tiers(const ObjectReader& reader, const ObjectReader& measured) {
    const auto memory = first_of(
        measured, {"peak_allocated_bytes", "peak_active_bytes", "peak_reserved_bytes", "peak_device_bytes",
                   "peak_unspecified_bytes", "resident_allocated_bytes", "by_rank", "fits"});
    const auto time =
        first_of(measured, {"step_time_s", "tokens_per_s_per_gpu", "model_flops_per_s_per_gpu", "mfu"});
    if (!memory && !time) reader.fail("measured", "nothing is measured", "give bytes, a time or \"fits\"");
    check_tier(reader, "tier", memory);
    check_tier(reader, "tier_time", time);
}

void read_measured(const ObjectReader& measured, MeasuredCase& out) {
    measured.allow_only(measured_keys);
    for (const auto& [key, counter] : counter_keys)
        if (const auto value = above_zero(measured, key)) out.measured.push_back({counter, *value});
    out.tokens_per_s_per_gpu = above_zero(measured, "tokens_per_s_per_gpu");
    const bool rates = above_zero(measured, "model_flops_per_s_per_gpu").has_value() ||
                       above_zero(measured, "mfu").has_value();
    out.rates_only = rates && !measured.has("step_time_s") && !out.tokens_per_s_per_gpu;
    out.fits = measured.boolean("fits");
    read_ranks(measured, out);
    read_by_rank(measured, out);
}

MeasuredCase read_case(const nlohmann::json& line, const ErrorPlace& place, Ids& ids) {
    const ObjectReader reader(line, place);
    constexpr const char* parts = "a measured case has a scenario and what was measured";
    reader.allow_only(case_keys);
    MeasuredCase out{.id = ids.read(reader), .source = {}, .place = place.file};
    out.scenario_json = required_part(reader, "scenario", parts).value().dump();
    const ObjectReader measured = required_part(reader, "measured", parts);
    out.source = required_text(reader, "source", "figures are summarised by source: say where they are from");
    out.tier = optional_tier(reader, "tier");
    out.tier_time = optional_tier(reader, "tier_time");
    read_measured(measured, out);
    check_tiers(reader, measured);
    check_remarks(reader);
    return out;
}

void read_kind(const ObjectReader& reader, MeasuredCollective& out) {
    const std::string kind = reader.string("collective").value_or("");
    out.all_to_all = kind == "all_to_all";
    bool known = out.all_to_all;
    for (const CollectiveKind k : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                   CollectiveKind::all_reduce, CollectiveKind::broadcast}) {
        if (kind != to_string(k)) continue;
        out.kind = k;
        known = true;
    }
    if (!known)
        reader.fail("collective", fmt::format("unknown collective '{}'", kind),
                    "one of: all_reduce, all_gather, reduce_scatter, broadcast, all_to_all");
}

/// Two figures of one measurement that differ by more than they were rounded by: the time is another
/// collective's, or the ranks are. nccl-tests prints bandwidths with two decimals of GB/s (src/common.cu,
/// writeBenchmarkLineBody); reports that quote it keep three digits of time and bandwidth.
void check_bandwidth(const ObjectReader& measured, std::string_view key, double factor,
                     const MeasuredCollective& of) {
    constexpr double printed_digit = 0.01e9, quoted_digits = 0.01;
    const auto stated = above_zero(measured, key);
    if (!stated || factor == 0) return;
    const double told = factor * static_cast<double>(of.bytes.count()) / of.time_s;
    if (std::abs(*stated - told) <= printed_digit / 2 + quoted_digits * told) return;
    measured.fail(key,
                  fmt::format("{} is {:.4g}, but {} bytes in time_s {:.4g} on {} ranks are {:.4g} bytes/s",
                              key, *stated, of.bytes.count(), of.time_s, of.cluster.gpus_used, told),
                  fmt::format("algbw is bytes / time_s and busbw {:.4g} of it here: keep the figure that was "
                              "measured, and check bytes (the whole buffer) and the number of GPUs",
                              factor));
}

/// algbw and busbw, which nothing else is made of.
void check_bandwidths(const ObjectReader& measured, const MeasuredCollective& of) {
    const CollectiveKind kind = of.all_to_all ? CollectiveKind::all_to_all : of.kind;
    check_bandwidth(measured, "algbw_bytes_per_s", 1, of);
    check_bandwidth(measured, "busbw_bytes_per_s", bus_factor(kind, of.cluster.gpus_used), of);
}

MeasuredCollective read_collective(const nlohmann::json& line, const ErrorPlace& place, Ids& ids) {
    const ObjectReader reader(line, place);
    reader.allow_only(collective_keys);
    MeasuredCollective out{.id = ids.read(reader), .source = {}};
    const ObjectReader cluster = required_part(reader, "cluster", "a measured collective has a cluster");
    const ObjectReader measured = required_part(reader, "measured", "a measured collective has its time");
    out.source = required_text(reader, "source", "figures are summarised by source: say where they are from");
    out.cluster = read_cluster(cluster.value(), cluster.place());
    if (out.cluster.gpus_used < 2)
        reader.fail("cluster", fmt::format("a collective of {} GPU moves nothing", out.cluster.gpus_used),
                    "give the GPUs that took part: nodes, gpus_per_node or gpus_used");
    read_kind(reader, out);
    out.algorithm = reader.string("algorithm").value_or("");
    const auto bytes = reader.integer("bytes", 1);
    if (!bytes) reader.fail("bytes", "\"bytes\" is missing", "nccl-tests' size: the whole buffer");
    out.bytes = Bytes{*bytes};
    measured.allow_only({"time_s", "algbw_bytes_per_s", "busbw_bytes_per_s"});
    const auto time = above_zero(measured, "time_s");
    if (!time) measured.fail("time_s", "is missing", "give the time in seconds");
    out.time_s = *time;
    check_bandwidths(measured, out);
    check_tier(reader, "tier", "time_s");
    out.tier = *optional_tier(reader, "tier");
    check_remarks(reader);
    return out;
}

void check_any(bool any, const std::string& file, const char* what) {
    if (!any)
        throw Error(ErrorCode::invalid_input, fmt::format("there is no {} in this file", what),
                    "one JSON object a line; docs/scenario.md describes it", {file, ""});
}

}  // namespace

std::vector<MeasuredCase> read_measured_cases(std::string_view text, const std::string& file) {
    std::vector<MeasuredCase> cases;
    Ids ids;
    for_each_line(text, file, [&](const nlohmann::json& line, const ErrorPlace& place) {
        cases.push_back(read_case(line, place, ids));
    });
    check_any(!cases.empty(), file, "measured case");
    return cases;
}

std::vector<MeasuredCollective> read_measured_collectives(std::string_view text, const std::string& file) {
    std::vector<MeasuredCollective> points;
    Ids ids;
    for_each_line(text, file, [&](const nlohmann::json& line, const ErrorPlace& place) {
        points.push_back(read_collective(line, place, ids));
    });
    check_any(!points.empty(), file, "measured collective");
    return points;
}

}  // namespace zeroplan
