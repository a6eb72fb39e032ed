#include "json/gpu_json.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "embedded_files.hpp"
#include "gpu_catalogue.hpp"
#include "json/object_reader.hpp"
#include "json/parse.hpp"
#include "nearest.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

// No memory or rate of one GPU comes near these: a larger number is a unit mistaken (bits, GB written as
// bytes²).
constexpr double largest_memory = 1e15;
constexpr double largest_rate = 1e18;
constexpr double most_multiprocessors = 10000;

constexpr std::array<std::string_view, 10> link_words{
    "nvlink2", "nvlink3", "nvlink4", "nvlink5", "pcie3", "pcie4", "pcie5", "xgmi", "shared_memory", "none"};

struct RateKey {
    std::string_view key;
    double GpuSpec::*member;
};
constexpr RateKey rate_keys[] = {
    {"dense_fp32_flop_per_s", &GpuSpec::fp32_flop_per_s},
    {"dense_tf32_flop_per_s", &GpuSpec::tf32_flop_per_s},
    {"dense_bf16_flop_per_s", &GpuSpec::bf16_flop_per_s},
    {"dense_fp16_flop_per_s", &GpuSpec::fp16_flop_per_s},
    {"dense_fp8_flop_per_s", &GpuSpec::fp8_flop_per_s},
};
constexpr std::string_view link_rate_key = "link_bytes_per_s_per_direction";

/// A number that stands there itself or as the "value" of an object; nothing if absent or null.
std::optional<double> figure(const ObjectReader& reader, std::string_view key, double most) {
    const json* found = reader.find(key);
    if (found == nullptr || !found->is_object()) return reader.number(key, 0, most);
    const ObjectReader object(*found, reader.place(key));
    object.allow_only({"value", "source", "recalled"});
    return object.number("value", 0, most);
}

double required_figure(const ObjectReader& reader, std::string_view key, double most) {
    const std::optional<double> value = figure(reader, key, most);
    if (!value || *value <= 0)
        reader.fail(key, fmt::format("a GPU needs \"{}\" above 0", key),
                    "take it from the maker's datasheet");
    return *value;
}

std::uint32_t read_multiprocessors(const ObjectReader& reader) {
    const std::optional<double> count = figure(reader, "multiprocessors", most_multiprocessors);
    if (!count) return 0;
    if (*count < 1 || *count != std::floor(*count))
        reader.fail("multiprocessors", fmt::format("multiprocessors is {}, but they are counted", *count),
                    "give a whole number as 132, or leave it out");
    return static_cast<std::uint32_t>(*count);
}

GpuSpec read_figures(const json& value, const ErrorPlace& place) {
    const ObjectReader reader(value, place);
    std::vector<std::string_view> keys{"name",
                                       "description",
                                       "note",
                                       "is_host",
                                       "link",
                                       "compute_capability",
                                       "multiprocessors",
                                       "hbm_bytes_per_s",
                                       "memory_usable_bytes",
                                       link_rate_key};
    for (const RateKey& rate : rate_keys) keys.push_back(rate.key);
    reader.allow_only(keys);

    GpuSpec gpu;
    gpu.name = reader.string("name").value_or("custom");
    gpu.is_host = reader.boolean("is_host").value_or(false);
    gpu.memory_usable =
        Bytes{static_cast<std::uint64_t>(required_figure(reader, "memory_usable_bytes", largest_memory))};
    gpu.hbm_bytes_per_s = required_figure(reader, "hbm_bytes_per_s", largest_rate);
    for (const RateKey& rate : rate_keys)
        gpu.*rate.member = figure(reader, rate.key, largest_rate).value_or(0);
    if (gpu.fp32_flop_per_s <= 0 && gpu.fp16_flop_per_s <= 0 && gpu.bf16_flop_per_s <= 0)
        reader.fail("dense_bf16_flop_per_s", "a GPU needs at least one dense rate above 0",
                    "give dense_bf16_flop_per_s, dense_fp16_flop_per_s or dense_fp32_flop_per_s");
    gpu.link_bytes_per_s = figure(reader, link_rate_key, largest_rate).value_or(0);
    gpu.link = reader.string("link").value_or("none");
    if (std::find(link_words.begin(), link_words.end(), gpu.link) == link_words.end())
        reader.fail_unknown_word("link", gpu.link, link_words);
    gpu.compute_capability =
        static_cast<std::uint32_t>(reader.integer("compute_capability", 0, 9999).value_or(0));
    gpu.multiprocessors = read_multiprocessors(reader);
    return gpu;
}

const embedded::File* find_in_catalogue(std::string_view name) {
    for (const embedded::File& file : embedded::gpus())
        if (file.name == name) return &file;
    return nullptr;
}

GpuSpec read_from_catalogue(const embedded::File& file) {
    const std::string path = fmt::format("topologies/gpus/{}.json", file.name);
    return read_figures(parse_json(file.text, path), {path, ""});
}

json rate_or_null(double rate) {
    return rate > 0 ? json(rate) : json(nullptr);
}

}  // namespace

GpuSpec read_gpu(const json& gpu, const ErrorPlace& place) {
    if (!gpu.is_string()) return read_figures(gpu, place);
    const auto name = gpu.get<std::string>();
    if (const embedded::File* file = find_in_catalogue(name)) return read_from_catalogue(*file);
    std::vector<std::string_view> names;
    for (const embedded::File& file : embedded::gpus()) names.push_back(file.name);
    throw Error(ErrorCode::not_found, fmt::format("no GPU is named \"{}\"", name),
                nearest_hint(name, names) + "; or give an object of its figures", place);
}

std::vector<GpuSpec> gpu_catalogue() {
    std::vector<GpuSpec> gpus;
    for (const embedded::File& file : embedded::gpus()) gpus.push_back(read_from_catalogue(file));
    return gpus;
}

json gpu_json(const GpuSpec& gpu) {
    if (const embedded::File* file = find_in_catalogue(gpu.name))
        if (read_from_catalogue(*file) == gpu) return gpu.name;
    json result = {{"name", gpu.name},
                   {"memory_usable_bytes", gpu.memory_usable.count()},
                   {"hbm_bytes_per_s", gpu.hbm_bytes_per_s},
                   {"link", gpu.link},
                   {"compute_capability", gpu.compute_capability},
                   {"is_host", gpu.is_host}};
    if (gpu.multiprocessors > 0) result["multiprocessors"] = gpu.multiprocessors;
    for (const RateKey& rate : rate_keys) result[std::string(rate.key)] = rate_or_null(gpu.*rate.member);
    result[std::string(link_rate_key)] = rate_or_null(gpu.link_bytes_per_s);
    return result;
}

}  // namespace zeroplan
