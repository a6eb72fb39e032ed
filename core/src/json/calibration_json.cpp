#include "json/calibration_json.hpp"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "json/object_reader.hpp"
#include "json/parse.hpp"
#include "nearest.hpp"
#include "zeroplan/cost_model.hpp"
#include "zeroplan/io.hpp"
#include "zeroplan/runtime_memory.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

constexpr double largest_figure = 1e15, longest_s = 1e5;
/// Less than the worst kernel or link reaches of its rate, and enough that no time or its interval overflows.
constexpr double least_share = 1e-4;
/// A byte a second for a rate; a count or exponent this small is none that was measured either.
constexpr double least_rate = 1, least_figure = 1e-6;
constexpr std::uint64_t most_ranks = 1'000'000, most_channels = 64;

std::vector<std::string> constant_names() {
    std::vector<std::string> names;
    for (const Constant& constant : cost_constants())
        if (!constant.name.starts_with("interval_")) names.push_back(constant.name);
    for (const std::string_view name : runtime_constants()) names.emplace_back(name);
    return names;
}

bool is_share(const std::string& name) {
    return name.find("efficiency") != std::string::npos || name.find("share") != std::string::npos;
}

/// Times and sizes may be nothing at all.
double least_of(const std::string& name) {
    if (is_share(name)) return least_share;
    if (name.ends_with("_per_s")) return least_rate;
    const bool may_be_none = name.ends_with("_s") || name.ends_with("_bytes") || name.ends_with("_accesses");
    return may_be_none ? 0 : least_figure;
}

/// Nothing reaches more than all of a rate; counts are whole.
std::optional<double> read_constant(const ObjectReader& reader, const std::string& name) {
    if (name == "nccl_channels") {
        const auto count = reader.integer(name, 1, most_channels);
        return count ? std::optional<double>(static_cast<double>(*count)) : std::nullopt;
    }
    const auto figure = reader.number(name, 0, is_share(name) ? 1 : largest_figure);
    if (figure && *figure > 0 && *figure < least_of(name))
        reader.fail(name, fmt::format("{} is {}, but at least {} is expected", name, *figure, least_of(name)),
                    is_share(name) ? "give the share of the rate that was reached, as 0.7, or leave it out"
                                   : "give what was measured in the unit of its name, or leave it out");
    return figure;
}

void read_constants(const ObjectReader& reader, Calibration& result) {
    const std::vector<std::string> names = constant_names();
    const std::vector<std::string_view> known(names.begin(), names.end());
    reader.allow_only(known);
    for (const auto& [name, value] : reader.value().items()) {
        const auto number = read_constant(reader, name);
        if (!number) continue;
        if (*number == 0 && least_of(name) > 0)
            reader.fail(name, fmt::format("{} cannot be 0", name), "give what was measured, or leave it out");
        const auto [entry, is_new] = result.constants.try_emplace(name, *number);
        if (!is_new && entry->second != *number)
            reader.fail(
                name,
                fmt::format("{} is {} here, but {} in another calibration", name, *number, entry->second),
                "keep one of the two");
    }
}

CollectiveKind read_kind(const ObjectReader& reader) {
    const std::string name = reader.string("collective").value_or("");
    for (const CollectiveKind kind :
         {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce,
          CollectiveKind::broadcast, CollectiveKind::all_to_all})
        if (name == to_string(kind)) return kind;
    reader.fail("collective", fmt::format("\"{}\" is no collective", name),
                "one of: all_gather, reduce_scatter, all_reduce, broadcast, all_to_all");
}

MeasuredPoint read_point(const ObjectReader& reader) {
    reader.allow_only({"collective", "ranks", "nodes", "bytes", "measured"});
    MeasuredPoint point{.kind = read_kind(reader)};
    const auto ranks = reader.integer("ranks", 2, most_ranks);
    if (!ranks)
        reader.fail("ranks", "\"ranks\" is missing",
                    "say how many ranks measured it; nccl-tests' log has them in its first lines");
    point.ranks = *ranks;
    point.nodes = reader.integer("nodes", 1, point.ranks).value_or(1);
    const auto measured = reader.object("measured");
    const auto bytes = reader.integer("bytes", 1);
    const auto seconds = measured ? measured->number("time_s", 0, longest_s) : std::nullopt;
    if (!bytes) reader.fail("bytes", "\"bytes\" is missing", "the size of the whole buffer");
    if (!seconds || *seconds == 0)
        reader.fail("measured", "\"time_s\" above 0 is missing", R"(as "measured": {"time_s": 0.0012})");
    point.bytes = static_cast<double>(*bytes);
    point.seconds = *seconds;
    return point;
}

auto key_of(const MeasuredPoint& point) {
    return std::tuple{point.kind, point.ranks, point.nodes, point.bytes};
}

/// Among those measured, which stay sorted. Nobody can tell which of two times of one size is meant.
void add_point(const MeasuredPoint& point, const ObjectReader& reader, Calibration& result) {
    std::vector<MeasuredPoint>& points = result.collectives;
    const auto after = std::upper_bound(
        points.begin(), points.end(), point,
        [](const MeasuredPoint& a, const MeasuredPoint& b) { return key_of(a) < key_of(b); });
    if (after != points.begin()) {
        const MeasuredPoint& before = *std::prev(after);
        if (key_of(before) == key_of(point) && before.seconds != point.seconds)
            reader.fail(
                "measured",
                fmt::format("{} of {:.0f} bytes on {} ranks takes {} s here, but {} s in another point",
                            to_string(point.kind), point.bytes, point.ranks, point.seconds, before.seconds),
                "keep one of the two");
    }
    points.insert(after, point);
}

void read_points(const ObjectReader& reader, Calibration& result) {
    const json* list = reader.find("collectives");
    if (list == nullptr) return;
    if (!list->is_array()) reader.fail("collectives", "\"collectives\" is a list of measured points");
    const ErrorPlace place = reader.place("collectives");
    for (std::size_t i = 0; i < list->size(); ++i) {
        const ObjectReader point((*list)[i], {place.file, fmt::format("{}/{}", place.pointer, i)});
        add_point(read_point(point), point, result);
    }
}

RingChannels read_ring(const ObjectReader& graph) {
    const auto channels = graph.integer("channels", 1, most_channels);
    const auto intra = graph.number("channel_intra_bytes_per_s", 1, largest_figure);
    if (!channels) graph.fail("channels", "\"channels\" is missing", "as zeroplan import writes it");
    if (!intra)
        graph.fail("channel_intra_bytes_per_s", "\"channel_intra_bytes_per_s\" is missing",
                   "the rate of one channel inside the node");
    return {static_cast<double>(*channels), *intra,
            graph.number("channel_inter_bytes_per_s", 1, largest_figure).value_or(*intra)};
}

/// The ring's channels: gathers and reduce-scatters are rings, and other algorithms' graphs have no more.
void read_graphs(const ObjectReader& reader, Calibration& result) {
    const json* list = reader.find("graphs");
    if (list == nullptr) return;
    if (!list->is_array()) reader.fail("graphs", "\"graphs\" is a list of NCCL's graphs");
    const ErrorPlace place = reader.place("graphs");
    bool found = false;
    for (std::size_t i = 0; i < list->size(); ++i) {
        const ObjectReader graph((*list)[i], {place.file, fmt::format("{}/{}", place.pointer, i)});
        graph.allow_only(
            {"pattern", "channels", "channel_intra_bytes_per_s", "channel_inter_bytes_per_s", "order"});
        if (graph.string("pattern") != "ring") continue;
        const RingChannels ring = read_ring(graph);
        if (result.ring && *result.ring != ring)
            graph.fail("channels", "this ring is another one than in the calibration before it",
                       "keep one of the two");
        result.ring = ring;
        found = true;
    }
    if (!found)
        reader.fail("graphs", "there is no ring among the graphs, and only its channels are used",
                    "dump all of NCCL's graphs (NCCL_GRAPH_DUMP_FILE), or leave them out");
}

void read_one(const json& value, const ErrorPlace& place, Calibration& result);

void read_file(const std::string& name, const ErrorPlace& place, Calibration& result) {
    namespace fs = std::filesystem;
    const fs::path beside = fs::path(place.file).parent_path() / name;
    std::error_code ignored;
    const std::string path = fs::exists(beside, ignored) ? beside.string() : name;
    const std::string text = read_text_file(path);
    if (text.find_first_not_of(" \t\r\n") != std::string::npos &&
        text[text.find_first_not_of(" \t\r\n")] != '{')
        throw Error(
            ErrorCode::invalid_input, "this is no calibration: a calibration is a JSON object",
            fmt::format("zeroplan import {} --output calibration.json makes one of an nccl-tests log or "
                        "of NCCL's graph",
                        path),
            {path, ""});
    read_one(parse_json(text, path), {path, ""}, result);
}

void read_one(const json& value, const ErrorPlace& place, Calibration& result) {
    if (value.is_string()) return read_file(value.get<std::string>(), place, result);
    const ObjectReader reader(value, place);
    reader.allow_only({"schema", "kind", "source", "constants", "collectives", "fits", "graphs"});
    if (const auto kind = reader.string("kind"); kind && *kind != "calibration")
        reader.fail("kind", fmt::format("this is a {}, not a calibration", *kind),
                    "zeroplan import makes a calibration of an nccl-tests log or of NCCL's graph");
    const std::string of_place = place.file.empty() ? "in the scenario" : place.file;
    const std::string source = reader.string("source").value_or(of_place);
    result.source += (result.source.empty() ? "" : ", ") + source;
    if (const auto constants = reader.object("constants")) read_constants(*constants, result);
    read_points(reader, result);
    read_graphs(reader, result);
}

}  // namespace

Calibration read_calibration(const json& value, const ErrorPlace& place) {
    Calibration result;
    if (value.is_array())
        for (std::size_t i = 0; i < value.size(); ++i)
            read_one(value[i], {place.file, fmt::format("{}/{}", place.pointer, i)}, result);
    else
        read_one(value, place, result);
    return result;
}

json calibration_json(const Calibration& calibration) {
    json result = {{"kind", "calibration"}, {"source", calibration.source}};
    if (!calibration.constants.empty()) result["constants"] = calibration.constants;
    for (const MeasuredPoint& point : calibration.collectives)
        result["collectives"].push_back({{"collective", to_string(point.kind)},
                                         {"ranks", point.ranks},
                                         {"nodes", point.nodes},
                                         {"bytes", static_cast<std::uint64_t>(point.bytes)},
                                         {"measured", {{"time_s", point.seconds}}}});
    if (const auto& ring = calibration.ring)
        result["graphs"] = json::array({{{"pattern", "ring"},
                                         {"channels", ring->count},
                                         {"channel_intra_bytes_per_s", ring->intra_bytes_per_s},
                                         {"channel_inter_bytes_per_s", ring->inter_bytes_per_s}}});
    return result;
}

}  // namespace zeroplan
