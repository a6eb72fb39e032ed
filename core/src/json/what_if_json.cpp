#include "json/what_if_json.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "json/object_reader.hpp"
#include "json/parse.hpp"
#include "json/what_if_fabric_json.hpp"
#include "nearest.hpp"
#include "printable.hpp"
#include "zeroplan/what_if_io.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view keys[] = {"stragglers", "slow_links", "leaf_switches", "fabric",
                                     "placement",  "background", "failures"};
constexpr double longest_time = 1e15, largest_size = 1e21;
constexpr std::array<std::string_view, 3> link_names{"nic", "gpu", "node"};  ///< by SlowLinkKind

/// The objects of a list; `key` itself may be absent.
template <typename Read>
void for_each_object(const ObjectReader& reader, std::string_view key, const Read& read) {
    const json* list = reader.find(key);
    if (list == nullptr) return;
    if (!list->is_array())
        reader.fail(key, fmt::format("\"{}\" must be a list, but is {}", key, shown(*list)));
    ErrorPlace place = reader.place(key);
    const std::string pointer = place.pointer;
    for (std::size_t i = 0; i < list->size(); ++i) {
        place.pointer = fmt::format("{}/{}", pointer, i);
        read(ObjectReader((*list)[i], place));
    }
}

/// A rank or link at less of its speed has failed, rather than slowed down.
constexpr double least_factor = 0.001;

/// From `least_factor` to 1.
double read_factor(const ObjectReader& reader, std::string_view meaning) {
    const auto factor = reader.number("factor", -std::numeric_limits<double>::max());
    if (!factor) reader.fail("factor", "\"factor\" is missing", std::string(meaning));
    if (!(*factor >= least_factor && *factor <= 1))
        reader.fail("factor",
                    fmt::format("\"factor\" must be at least {} and at most 1, but is {}", least_factor,
                                shown(*reader.find("factor"))),
                    std::string(meaning));
    return *factor;
}

void check_rank(const ObjectReader& reader, std::string_view key, std::uint64_t rank,
                const ClusterSpec& cluster) {
    if (rank >= cluster.gpus_used)
        reader.fail(key, fmt::format("there is no rank {}: the job has {} ranks", rank, cluster.gpus_used),
                    fmt::format("ranks are 0 to {}", cluster.gpus_used - 1));
}

Straggler read_straggler(const ObjectReader& reader, const ClusterSpec& cluster) {
    reader.allow_only({"rank", "factor"});
    const auto rank = reader.integer("rank");
    if (!rank) reader.fail("rank", "\"rank\" is missing", R"(as in {"rank": 5, "factor": 0.8})");
    check_rank(reader, "rank", *rank, cluster);
    return {*rank, read_factor(reader, "0.8: the rank computes at 0.8 of its speed, 1.25 times as long")};
}

[[noreturn]] void fail_link(const ObjectReader& reader, std::string_view name) {
    const std::string_view kind = name.substr(0, name.find(':'));
    const auto near = nearest(kind, std::span<const std::string_view>(link_names));
    reader.fail(
        "link", fmt::format("no link is named \"{}\"", name),
        fmt::format("{}nic:RANK is a rank's NIC, gpu:RANK its link to the GPUs of its node, node:NODE "
                    "all NICs of a node",
                    near ? fmt::format("did you mean {}:? ", *near) : ""));
}

/// "nic:5"
SlowLink parse_link(const ObjectReader& reader, std::string_view name) {
    const auto colon = std::min(name.find(':'), name.size());
    const auto found = std::find(link_names.begin(), link_names.end(), name.substr(0, colon));
    SlowLink link;
    const std::string_view number = name.substr(std::min(colon + 1, name.size()));
    const auto parsed = std::from_chars(number.data(), number.data() + number.size(), link.index);
    if (found == link_names.end() || parsed.ec != std::errc{} || parsed.ptr != number.data() + number.size())
        fail_link(reader, name);
    link.kind = static_cast<SlowLinkKind>(found - link_names.begin());
    return link;
}

/// Whether a step of any job on the cluster could use the link.
void check_link(const ObjectReader& reader, const SlowLink& link, const ClusterSpec& cluster) {
    if (link.kind == SlowLinkKind::node) {
        const std::uint64_t nodes = (cluster.gpus_used + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
        if (link.index >= nodes)
            reader.fail("link", fmt::format("there is no node {}: the job has {}", link.index, nodes),
                        fmt::format("nodes are 0 to {}", nodes - 1));
    } else {
        check_rank(reader, "link", link.index, cluster);
    }
    if (link.kind == SlowLinkKind::gpu && !(cluster.gpu.link_bytes_per_s > 0))
        reader.fail("link", fmt::format("{} has no link to other GPUs", cluster.gpu.name));
    if (link.kind != SlowLinkKind::gpu && !(cluster.inter_node.bytes_per_s_per_gpu > 0))
        reader.fail("link", fmt::format("{} is on no network: nothing connects the nodes", to_string(link)),
                    "give cluster.inter_node, or slow gpu:RANK");
}

SlowLink read_slow_link(const ObjectReader& reader, const ClusterSpec& cluster) {
    reader.allow_only({"link", "factor"});
    const auto name = reader.string("link");
    if (!name) reader.fail("link", "\"link\" is missing", R"(as in {"link": "nic:5", "factor": 0.5})");
    SlowLink link = parse_link(reader, *name);
    check_link(reader, link, cluster);
    link.factor = read_factor(reader, "0.5: the link has half of its bandwidth");
    return link;
}

/// Seconds, bytes or bytes a second: from 1 to `most`, as what is meant for a cluster is; nothing if absent.
std::optional<double> read_positive(const ObjectReader& reader, std::string_view key, double most) {
    return reader.number(key, 1, most);
}

Failures read_failures(const ObjectReader& reader) {
    reader.allow_only({"gpu_mtbf_s", "node_mtbf_s", "checkpoint_bytes_per_second", "checkpoint_bytes",
                       "checkpoint_interval_s", "restart_s"});
    Failures failures;
    failures.gpu_mtbf_s = read_positive(reader, "gpu_mtbf_s", longest_time).value_or(0);
    failures.node_mtbf_s = read_positive(reader, "node_mtbf_s", longest_time).value_or(0);
    if (failures.gpu_mtbf_s == 0 && failures.node_mtbf_s == 0)
        reader.fail("gpu_mtbf_s", "nothing fails: neither \"gpu_mtbf_s\" nor \"node_mtbf_s\" is given",
                    "give --gpu-mtbf or --node-mtbf, the mean time between failures of one, as 50000h");
    const auto rate = read_positive(reader, "checkpoint_bytes_per_second", largest_size);
    if (!rate)
        reader.fail("checkpoint_bytes_per_second", "\"checkpoint_bytes_per_second\" is missing",
                    "give --checkpoint-bandwidth, what storage takes from all ranks together, as 50e9");
    failures.checkpoint_bytes_per_s = *rate;
    failures.checkpoint_bytes = read_positive(reader, "checkpoint_bytes", largest_size);
    failures.checkpoint_interval_s = read_positive(reader, "checkpoint_interval_s", longest_time);
    failures.restart_s = reader.number("restart_s", 0, longest_time).value_or(0);
    return failures;
}

ordered_json to_json(const Failures& failures) {
    ordered_json out = ordered_json::object();
    if (failures.gpu_mtbf_s > 0) out["gpu_mtbf_s"] = failures.gpu_mtbf_s;
    if (failures.node_mtbf_s > 0) out["node_mtbf_s"] = failures.node_mtbf_s;
    out["checkpoint_bytes_per_second"] = failures.checkpoint_bytes_per_s;
    if (failures.checkpoint_bytes) out["checkpoint_bytes"] = *failures.checkpoint_bytes;
    if (failures.checkpoint_interval_s) out["checkpoint_interval_s"] = *failures.checkpoint_interval_s;
    out["restart_s"] = failures.restart_s;
    return out;
}

/// [{`name_key`: …, "factor": …}, …] of "NAME=FACTOR" texts.
Setting factors_setting(const char* pointer, const char* name_key, bool name_is_number,
                        const std::vector<std::string>& texts, const std::string& origin,
                        const char* example) {
    const auto value = [](std::string_view text, bool number) {
        return number && json::accept(text) ? json::parse(text) : json(std::string(text));
    };
    const auto factor = [&](std::string_view text) {
        json read = value(text, true);
        if (!read.is_number())
            throw Error(ErrorCode::invalid_input,
                        fmt::format("the factor \"{}\" is no number", printable(text.substr(0, 40))),
                        fmt::format("a share of the usual speed, as in {} {}", origin, example),
                        {"command line", origin});
        return read;
    };
    json list = json::array();
    for (const std::string& text : texts) {
        const auto equals = text.find('=');
        if (equals == std::string::npos)
            throw Error(ErrorCode::invalid_input, fmt::format("\"{}\" has no \"=\"", text),
                        fmt::format("as in {} {}", origin, example), {"command line", origin});
        const std::string_view whole = text;
        list.push_back({{name_key, value(whole.substr(0, equals), name_is_number)},
                        {"factor", factor(whole.substr(equals + 1))}});
    }
    return {pointer, list.dump(-1, ' ', false, json::error_handler_t::replace), origin};
}

}  // namespace

std::span<const std::string_view> what_if_keys() {
    return keys;
}

std::string to_string(const SlowLink& link) {
    return fmt::format("{}:{}", link_names[static_cast<std::size_t>(link.kind)], link.index);
}

std::string describe(const Straggler& straggler) {
    return fmt::format("rank {} computes at {} of its speed", straggler.rank, straggler.factor);
}

std::string describe(const SlowLink& link) {
    constexpr std::array<const char*, 3> names{"the NIC of rank", "the GPU link of rank", "all NICs of node"};
    return fmt::format("{} {} at {} of {} bandwidth", names[static_cast<std::size_t>(link.kind)], link.index,
                       link.factor, link.kind == SlowLinkKind::node ? "their" : "its");
}

WhatIf read_what_if(const json& value, const ClusterSpec& cluster, ErrorPlace place) {
    const ObjectReader reader(value, std::move(place));
    reader.allow_only(keys);
    WhatIf result;
    for_each_object(reader, "stragglers", [&](const ObjectReader& object) {
        const Straggler straggler = read_straggler(object, cluster);
        for (const Straggler& other : result.stragglers)
            if (other.rank == straggler.rank)
                object.fail("rank", fmt::format("rank {} has two factors, {} and {}", other.rank,
                                                other.factor, straggler.factor));
        result.stragglers.push_back(straggler);
    });
    for_each_object(reader, "slow_links", [&](const ObjectReader& object) {
        const SlowLink link = read_slow_link(object, cluster);
        for (const SlowLink& other : result.slow_links)
            if (other.kind == link.kind && other.index == link.index)
                object.fail("link", fmt::format("{} has two factors, {} and {}", to_string(link),
                                                other.factor, link.factor));
        result.slow_links.push_back(link);
    });
    read_what_if_fabric(reader, cluster, result);
    if (const auto failures = reader.object("failures")) result.failures = read_failures(*failures);
    return result;
}

ordered_json what_if_to_json(const WhatIf& what_if) {
    ordered_json out = ordered_json::object();
    for (const Straggler& straggler : what_if.stragglers)
        out["stragglers"].push_back({{"rank", straggler.rank}, {"factor", straggler.factor}});
    for (const SlowLink& link : what_if.slow_links)
        out["slow_links"].push_back({{"link", to_string(link)}, {"factor", link.factor}});
    write_what_if_fabric(what_if, out);
    if (what_if.failures) out["failures"] = to_json(*what_if.failures);
    return out;
}

std::string what_if_json(const WhatIf& what_if, int indent) {
    return what_if_to_json(what_if).dump(indent);
}

Setting straggler_setting(const std::vector<std::string>& texts, const std::string& origin) {
    return factors_setting("/what_if/stragglers", "rank", true, texts, origin, "5=0.8");
}

Setting duration_setting(std::string pointer, const std::string& text, std::string origin) {
    constexpr std::array<std::pair<char, double>, 5> units{
        {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'y', 365 * 86400.0}}};
    for (const auto& [letter, seconds] : units) {
        if (text.empty() || text.back() != letter) continue;
        const std::string number = text.substr(0, text.size() - 1);
        if (!json::accept(number) || !json::parse(number).is_number()) break;
        return {std::move(pointer), json(json::parse(number).get<double>() * seconds).dump(),
                std::move(origin)};
    }
    return text_setting(std::move(pointer), text, std::move(origin));
}

Setting slow_link_setting(const std::vector<std::string>& texts, const std::string& origin) {
    return factors_setting("/what_if/slow_links", "link", false, texts, origin, "nic:5=0.5");
}

}  // namespace zeroplan
