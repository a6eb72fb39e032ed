#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>

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

void read_ranks(const ObjectReader& measured, MeasuredCase& out) {
    const nlohmann::json* ranks = measured.find("ranks");
    if (ranks == nullptr) return;
    if (ranks->is_array()) {
        out.ranks = *measured.integers("ranks");
        return;
    }
    const std::string word = *measured.string("ranks");
    if (word == "first") {
        out.ranks = {0};
    } else if (word == "last") {
        out.last_rank = true;
    } else if (word != "all") {
        measured.fail("ranks", fmt::format("unknown ranks '{}'", word),
                      "all, first, last or a list of ranks");
    }
}

MeasuredCase read_case(const nlohmann::json& line, const ErrorPlace& place) {
    const ObjectReader reader(line, place);
    MeasuredCase out{.id = reader.string("id").value_or(""), .source = reader.string("source").value_or("")};
    const auto scenario = reader.object("scenario");
    const auto measured = reader.object("measured");
    if (!scenario)
        reader.fail("scenario", "is missing", "a measured case has a scenario and what was measured");
    if (!measured)
        reader.fail("measured", "is missing", "a measured case has a scenario and what was measured");
    out.scenario_json = scenario->value().dump();
    out.tier = optional_tier(reader, "tier");
    out.tier_time = optional_tier(reader, "tier_time");
    for (const auto& [key, counter] : counter_keys)
        if (const auto value = measured->number(key)) out.measured.push_back({counter, *value});
    out.tokens_per_s_per_gpu = measured->number("tokens_per_s_per_gpu");
    out.fits = measured->boolean("fits");
    read_ranks(*measured, out);
    return out;
}

MeasuredCollective read_collective(const nlohmann::json& line, const ErrorPlace& place) {
    const ObjectReader reader(line, place);
    MeasuredCollective out{.id = reader.string("id").value_or(""),
                           .source = reader.string("source").value_or("")};
    const auto cluster = reader.object("cluster");
    const auto measured = reader.object("measured");
    if (!cluster) reader.fail("cluster", "is missing", "a measured collective has a cluster");
    if (!measured) reader.fail("measured", "is missing", "a measured collective has its time");
    out.cluster = read_cluster(cluster->value(), cluster->place());
    const std::string kind = reader.string("collective").value_or("");
    bool known = kind == "all_to_all";
    out.all_to_all = known;
    for (const CollectiveKind k : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                   CollectiveKind::all_reduce, CollectiveKind::broadcast}) {
        if (kind != to_string(k)) continue;
        out.kind = k;
        known = true;
    }
    if (!known)
        reader.fail("collective", fmt::format("unknown collective '{}'", kind),
                    "one of: all_reduce, all_gather, reduce_scatter, broadcast, all_to_all");
    out.algorithm = reader.string("algorithm").value_or("");
    out.bytes = Bytes{reader.integer("bytes", 1).value_or(1)};
    const auto time = measured->number("time_s");
    if (!time || *time <= 0)
        measured->fail("time_s", "is missing or not above 0", "give the time in seconds");
    out.time_s = *time;
    out.tier = optional_tier(reader, "tier").value_or(Tier::c);
    return out;
}

}  // namespace

std::vector<MeasuredCase> read_measured_cases(std::string_view text, const std::string& file) {
    std::vector<MeasuredCase> cases;
    for_each_line(text, file, [&](const nlohmann::json& line, const ErrorPlace& place) {
        cases.push_back(read_case(line, place));
    });
    return cases;
}

std::vector<MeasuredCollective> read_measured_collectives(std::string_view text, const std::string& file) {
    std::vector<MeasuredCollective> points;
    for_each_line(text, file, [&](const nlohmann::json& line, const ErrorPlace& place) {
        points.push_back(read_collective(line, place));
    });
    return points;
}

}  // namespace zeroplan
