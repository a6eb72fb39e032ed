#include "json/run_json.hpp"

#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "json/object_reader.hpp"

namespace zeroplan {
namespace {

constexpr std::string_view keys[] = {"learning_rate", "epochs", "steps", "seed", "data", "checkpoint"};
constexpr std::string_view synthetic = "synthetic:";
constexpr std::uint64_t largest_count = 1ULL << 40;

struct SyntheticData {
    std::uint64_t samples = 0, width = 0;
};

std::optional<std::uint64_t> read_count(std::string_view text) {
    std::uint64_t count = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), count);
    if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size()) return std::nullopt;
    if (count == 0 || count > largest_count) return std::nullopt;
    return count;
}

SyntheticData read_synthetic(const ObjectReader& run, std::string_view data) {
    const std::string_view size = data.substr(synthetic.size());
    const auto cross = std::min(size.find('x'), size.size());
    const auto samples = read_count(size.substr(0, cross));
    const auto width = read_count(size.substr(std::min(cross + 1, size.size())));
    if (!samples || !width)
        run.fail("data", fmt::format("\"{}\" is not synthetic:SAMPLESxWIDTH", data),
                 "as in \"synthetic:1000x100\": 1000 samples of 100 numbers");
    return {*samples, *width};
}

std::string read_data(const ObjectReader& run, const ModelSpec& model, std::uint64_t sequence_length) {
    const bool features = model.batch == BatchKind::features;
    const auto stated = run.string("data");
    if (!stated) return fmt::format("synthetic:1000x{}", features ? model.feature_width : sequence_length);
    if (!stated->starts_with(synthetic)) return *stated;
    const SyntheticData data = read_synthetic(run, *stated);
    if (features && data.width != model.feature_width)
        run.fail("data",
                 fmt::format("the samples are {} numbers wide, but model {} takes {}", data.width, model.name,
                             model.feature_width),
                 fmt::format("use synthetic:{}x{}", data.samples, model.feature_width));
    return *stated;
}

}  // namespace

std::span<const std::string_view> run_keys() {
    return keys;
}

RunConfig read_run(const nlohmann::json& run, const ModelSpec& model, std::uint64_t sequence_length,
                   ErrorPlace place) {
    const ObjectReader object(run, std::move(place));
    object.allow_only(keys);
    RunConfig config;
    config.learning_rate = object.number("learning_rate", 0, 1e6).value_or(config.learning_rate);
    config.epochs = object.integer("epochs", 1, largest_count).value_or(config.epochs);
    config.steps = object.integer("steps", 1, largest_count);
    config.seed = object.integer("seed").value_or(config.seed);
    config.data = read_data(object, model, sequence_length);
    config.checkpoint = object.string("checkpoint").value_or("");
    if (config.checkpoint.find('\0') != std::string::npos)
        object.fail("checkpoint", "no file's name holds a NUL character", "leave \\u0000 out");
    return config;
}

nlohmann::ordered_json run_to_json(const RunConfig& run) {
    nlohmann::ordered_json out;
    out["learning_rate"] = run.learning_rate;
    out["epochs"] = run.epochs;
    if (run.steps) out["steps"] = *run.steps;
    out["seed"] = run.seed;
    out["data"] = run.data;
    if (!run.checkpoint.empty()) out["checkpoint"] = run.checkpoint;
    return out;
}

}  // namespace zeroplan
