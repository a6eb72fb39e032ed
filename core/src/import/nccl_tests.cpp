#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "cost/bus_factor.hpp"
#include "import/import_builder.hpp"
#include "import/import_readers.hpp"
#include "import/latency_bandwidth.hpp"
#include "import/log_prefix.hpp"
#include "import/text_lines.hpp"

namespace zeroplan {
namespace {

using nlohmann::ordered_json;

/// One row of the table, out of place.
struct Point {
    std::size_t line = 0;
    std::uint64_t bytes = 0;
    std::string operation;  ///< redop: "none", "sum", …
    double time_s = 0, algbw = 0, busbw = 0;
};

struct Log {
    std::string collective;  ///< where the log names it
    std::uint64_t ranks = 0, nodes = 1;
    std::vector<Point> points;
    std::optional<std::size_t> wrong;  ///< line of a row with wrong results
};

/// The columns before "#wrong", from the header line.
std::vector<std::string> header_columns(const std::vector<std::string>& words) {
    std::vector<std::string> columns(words.begin() + 1, words.end());
    for (std::string& column : columns)
        if (column == "error") column = "#wrong";
    return columns;
}

std::size_t column(const std::vector<std::string>& columns, std::string_view name) {
    return static_cast<std::size_t>(std::find(columns.begin(), columns.end(), name) - columns.begin());
}

template <typename Number>
Number parse(const Import& import, std::size_t line, std::string_view name, const std::string& word) {
    Number value{};
    const char* end = word.data() + word.size();
    const auto parsed = std::from_chars(word.data(), end, value);
    bool right = parsed.ec == std::errc{} && parsed.ptr == end;
    if constexpr (std::is_floating_point_v<Number>)
        right = right && std::isfinite(value) && value >= 0 && value < 1e15;
    if (!right)
        fail_at(import, line, name, fmt::format("\"{}\" is no number", word.substr(0, 40)),
                "give the log as nccl-tests printed it, its header line included");
    return value;
}

void read_point(const Import& import, Log& log, const std::vector<std::string>& columns, const TextLine& line,
                const std::vector<std::string>& words) {
    const std::size_t time = column(columns, "time");
    if (words.size() < time + 3)
        fail_at(import, line.number, "",
                fmt::format("{} columns, but the table has {}", words.size(), columns.size()),
                "the log may have been cut off");
    Point point;
    point.line = line.number;
    point.bytes = parse<std::uint64_t>(import, line.number, "size", words[0]);
    point.time_s = 1e-6 * parse<double>(import, line.number, "time", words[time]);
    point.algbw = 1e9 * parse<double>(import, line.number, "algbw", words[time + 1]);
    point.busbw = 1e9 * parse<double>(import, line.number, "busbw", words[time + 2]);
    if (const std::size_t redop = column(columns, "redop"); redop < time) point.operation = words[redop];
    if (words.size() > time + 3 && columns.size() > time + 3 && words[time + 3] != "N/A" &&
        parse<double>(import, line.number, "#wrong", words[time + 3]) > 0 && columns[time + 3] == "#wrong")
        log.wrong = line.number;
    if (point.bytes > 0 && point.time_s > 0) log.points.push_back(point);
}

/// "nGpus 8" of the first comment, and one "# Rank 3 … on host" line a rank.
void read_comment(Log& log, const std::vector<std::string>& words, std::set<std::string>& hosts) {
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
        std::uint64_t count = 0;
        const std::string& next = words[i + 1];
        const bool number = std::from_chars(next.data(), next.data() + next.size(), count).ec == std::errc{};
        if (words[i] == "nGpus" && number && log.ranks == 0 && count <= 1'000'000) log.ranks = count;
        if (words[i] == "on" && words.size() > 1 && words[1] == "Rank") hosts.insert(next);
    }
}

Log read_log(const Import& import, std::string_view text) {
    constexpr std::array<const char*, 6> programs{"all_reduce", "all_gather", "reduce_scatter",
                                                  "alltoall",   "broadcast",  "sendrecv"};
    Log log;
    std::vector<std::string> columns;
    std::set<std::string> hosts;
    std::uint64_t rank_lines = 0;
    for (const TextLine& line : text_lines(text)) {
        const std::vector<std::string> words = words_of(without_log_prefix(line.text));
        if (words.empty()) continue;
        for (const char* program : programs)
            if (log.collective.empty() && line.text.find(std::string(program) + "_perf") != std::string::npos)
                log.collective = program;
        if (words[0] == "#" && words.size() > 4 && words[1] == "size" && columns.empty())
            columns = header_columns(words);
        else if (words[0].starts_with('#'))
            read_comment(log, words, hosts);
        else if (!columns.empty() && words[0].find_first_not_of("0123456789") == std::string::npos)
            read_point(import, log, columns, line, words);
        if (words.size() > 2 && words[0] == "#" && words[1] == "Rank") ++rank_lines;
    }
    if (rank_lines > 0) log.ranks = rank_lines;
    if (!hosts.empty()) log.nodes = hosts.size();
    return log;
}

/// Of busbw to algbw: sendrecv is no collective, and both are the same.
double bus_factor_of(const std::string& collective, std::uint64_t ranks) {
    for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                      CollectiveKind::reduce_scatter, CollectiveKind::all_to_all})
        if (collective == to_string(kind)) return bus_factor(kind, ranks);
    return 1;
}

/// Which collective it is, where the log doesn't name it, from its columns and from busbw / algbw.
std::string infer_collective(Import& import, const Log& log) {
    if (!log.collective.empty()) return log.collective == "alltoall" ? "all_to_all" : log.collective;
    const Point& largest = log.points.back();
    const double ratio = largest.algbw > 0 ? largest.busbw / largest.algbw : 0;
    std::string guess = "all_gather";
    if (!largest.operation.empty() && largest.operation != "none")
        guess = ratio > 1 ? "all_reduce" : "reduce_scatter";
    note(import, Finding::resolved, "", largest.line,
         fmt::format("taken for {}: the log names no program; busbw is {:.3f} of algbw{}", guess, ratio,
                     guess == "all_gather" ? " and nothing is reduced (an all-to-all looks the same)" : ""));
    return guess;
}

void check_factor(Import& import, const Log& log, const std::string& collective) {
    const Point& largest = log.points.back();
    if (log.ranks < 2 || largest.algbw <= 0) return;
    const double expected = bus_factor_of(collective, log.ranks), found = largest.busbw / largest.algbw;
    if (std::abs(found - expected) <= 0.02 * expected) return;
    note(import, Finding::warning, "", largest.line,
         fmt::format("busbw / algbw is {:.3f}, but {} over {} ranks has {:.3f}", found, collective, log.ranks,
                     expected),
         "is the number of ranks right? nGpus counts those of one process only");
}

ordered_json point_json(const std::string& collective, const Log& log, const Point& point) {
    return {
        {"collective", collective},
        {"ranks", log.ranks},
        {"nodes", log.nodes},
        {"bytes", point.bytes},
        {"measured",
         {{"time_s", point.time_s}, {"algbw_bytes_per_s", point.algbw}, {"busbw_bytes_per_s", point.busbw}}}};
}

void add_fit(Import& import, const Log& log, const std::string& collective, ordered_json& calibration) {
    std::vector<SizeTime> samples;
    for (const Point& point : log.points) samples.push_back({static_cast<double>(point.bytes), point.time_s});
    const auto fit = fit_latency_bandwidth(samples);
    if (!fit) return;
    const double busbw = fit->bytes_per_s * (log.ranks > 1 ? bus_factor_of(collective, log.ranks) : 1);
    figure(import, "latency_s", fit->latency_s, "s", "of the smallest message, without its transfer");
    figure(import, "busbw_bytes_per_s", busbw, "B/s", "asymptote: what the two largest messages differ by");
    figure(import, "largest_relative_error", fit->largest_relative_error, "1",
           "of latency + bytes / bandwidth at a point of the table: use the points themselves");
    calibration["fits"] = {{{"collective", collective},
                            {"ranks", log.ranks},
                            {"latency_s", fit->latency_s},
                            {"busbw_bytes_per_s", busbw},
                            {"largest_relative_error", fit->largest_relative_error}}};
}

}  // namespace

Import import_nccl_tests(std::string_view text, const std::string& file) {
    Import import;
    import.kind = ImportKind::nccl_tests;
    import.file = import.scenario.file = file;
    Log log = read_log(import, text);
    if (log.points.empty())
        fail_at(import, 0, "", "no row of measurements",
                "paste the log whole: its header and the rows below it");
    std::sort(log.points.begin(), log.points.end(),
              [](const Point& a, const Point& b) { return a.bytes < b.bytes; });
    const std::string collective = infer_collective(import, log);
    check_factor(import, log, collective);
    if (log.ranks == 0)
        note(import, Finding::missing, "", 0, "the log doesn't say how many ranks there were",
             "keep its first lines: \"# nThread 1 nGpus 8 …\" or \"# Rank 0 …\"");
    if (log.wrong)
        note(import, Finding::warning, "", *log.wrong, "results were wrong (#wrong > 0)",
             "measure again on sound hardware");
    ordered_json calibration{{"schema", 1}, {"kind", "calibration"}, {"source", file}};
    for (const Point& point : log.points)
        calibration["collectives"].push_back(point_json(collective, log, point));
    figure(import, "points", static_cast<double>(log.points.size()), "1");
    figure(import, "ranks", static_cast<double>(log.ranks), "ranks");
    figure(import, "largest_busbw_bytes_per_s", log.points.back().busbw, "B/s",
           "measured, of the largest message");
    add_fit(import, log, collective, calibration);
    import.calibration_json = calibration.dump(2, ' ', false, ordered_json::error_handler_t::replace);
    return import;
}

}  // namespace zeroplan
