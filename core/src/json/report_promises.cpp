#include "json/report_promises.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace zeroplan {
namespace {

using nlohmann::json;

constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();
constexpr const char* way_out = "is it a complete report of zeroplan? Write it again with --json";

[[noreturn]] void fail_missing(const ObjectReader& parent, std::string_view key, const char* what = "") {
    parent.fail(key, fmt::format("the report has no {}\"{}\"", what, key), way_out);
}

std::uint64_t rank_number(const ObjectReader& group, std::string_view text) {
    std::uint64_t number = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size())
        group.fail("ranks", fmt::format("\"{}\" is no rank", text), "ranks are written as 0-6,8");
    return number;
}

RankRange read_range(const ObjectReader& group, std::string_view range) {
    const auto dash = range.find('-');
    const std::uint64_t first = rank_number(group, range.substr(0, dash));
    const std::uint64_t last = dash == range.npos ? first : rank_number(group, range.substr(dash + 1));
    if (last < first)
        group.fail("ranks", fmt::format("\"{}\" begins at rank {} and ends at rank {}", range, first, last),
                   fmt::format("write {}-{}", last, first));
    return {first, last};
}

}  // namespace

ObjectReader required_object(const ObjectReader& parent, std::string_view key) {
    if (auto object = parent.object(key)) return *object;
    fail_missing(parent, key);
}

const json& required_list(const ObjectReader& parent, std::string_view key) {
    const json* list = parent.find(key);
    if (list == nullptr || !list->is_array()) fail_missing(parent, key, "list ");
    return *list;
}

std::uint64_t required_count(const ObjectReader& parent, std::string_view key, std::uint64_t least) {
    if (const auto count = parent.integer(key, least, largest)) return *count;
    fail_missing(parent, key);
}

double required_number(const ObjectReader& parent, std::string_view key) {
    if (const auto number = parent.number(key)) return *number;
    fail_missing(parent, key);
}

std::string required_string(const ObjectReader& parent, std::string_view key) {
    if (auto text = parent.string(key)) return *std::move(text);
    fail_missing(parent, key);
}

std::string required_word(const ObjectReader& parent, std::string_view key,
                          std::span<const std::string_view> known) {
    std::string word = required_string(parent, key);
    if (std::find(known.begin(), known.end(), word) == known.end())
        parent.fail_unknown_word(key, word, known);
    return word;
}

std::vector<RankRange> read_ranks(const ObjectReader& group) {
    const std::string text = required_string(group, "ranks");
    std::vector<RankRange> ranks;
    std::string_view rest = text;
    for (;;) {
        const std::string_view range = rest.substr(0, rest.find(','));
        ranks.push_back(read_range(group, range));
        if (range.size() == rest.size()) return ranks;
        rest.remove_prefix(range.size() + 1);
    }
}

void check_every_rank_once(const ObjectReader& report, std::string_view key, std::vector<RankRange> ranges,
                           std::uint64_t world_size) {
    std::sort(ranges.begin(), ranges.end(),
              [](const RankRange& a, const RankRange& b) { return a.first < b.first; });
    const auto fail = [&](std::uint64_t rank, const char* how) {
        report.fail(key, fmt::format("rank {} {}, and the world has {} ranks", rank, how, world_size),
                    way_out);
    };
    std::uint64_t next = 0;
    for (const RankRange& range : ranges) {
        if (range.first < next) fail(range.first, "stands here twice");
        if (range.last >= world_size) fail(range.last, "stands here");
        if (range.first > next) fail(next, "is missing here");
        next = range.last + 1;
    }
    if (next < world_size) fail(next, "is missing here");
}

}  // namespace zeroplan
