#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "embedded_files.hpp"
#include "engines/engine.hpp"
#include "import/model_reader.hpp"
#include "json/cluster_json.hpp"
#include "json/gpu_json.hpp"
#include "json/parse.hpp"
#include "zeroplan/io.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

std::string rate(double bytes_per_s) {
    return bytes_per_s >= 1e12 ? fmt::format("{:.3g} TB/s", bytes_per_s / 1e12)
                               : fmt::format("{:.4g} GB/s", bytes_per_s / 1e9);
}

std::string summary_of(const ModelSpec& model) {
    std::string text = format_count(model.parameter_count()) + " parameters";
    if (model.batch == BatchKind::features)
        text += fmt::format(", {} linears", model.blocks.size());
    else if (model.layers > 0)
        text += fmt::format(", {} layers of {}", model.layers, format_count(model.hidden_size));
    if (model.batch == BatchKind::tokens)
        text += fmt::format(", up to {} tokens", format_count(model.max_sequence_length));
    return text;
}

std::string summary_of(const GpuSpec& gpu) {
    std::string text = fmt::format("{} at {}", format_gib(gpu.memory_usable), rate(gpu.hbm_bytes_per_s));
    for (const auto& [name, flops] :
         {std::pair{"bf16", gpu.bf16_flop_per_s}, {"fp16", gpu.fp16_flop_per_s}}) {
        if (flops <= 0) continue;
        text += fmt::format(", {:.4g} TFLOP/s {}", flops / 1e12, name);
        break;
    }
    if (gpu.link_bytes_per_s > 0) text += fmt::format(", {} {}", gpu.link, rate(gpu.link_bytes_per_s));
    return text;
}

std::string summary_of(const ClusterSpec& cluster) {
    std::string text =
        fmt::format("{} × {}, {}", cluster.gpus_per_node, cluster.gpu.name, to_string(cluster.intra_node));
    if (cluster.inter_node.kind != InterNodeKind::none)
        text += fmt::format("; {} at {} a GPU", to_string(cluster.inter_node.kind),
                            rate(cluster.inter_node.bytes_per_s_per_gpu));
    return text;
}

/// What the file says for people: "provider", whose cloud the machine is rented in; "fabric", what joins such
/// nodes. Empty if it says nothing.
std::string said_of(const embedded::File& topology, const char* key) {
    const json file = parse_json(topology.text, fmt::format("topologies/{}.json", topology.name));
    return file.value(key, std::string());
}

template <typename Summary>
std::vector<Preset> presets_of(std::span<const embedded::File> files, Summary summary) {
    std::vector<Preset> presets;
    for (const embedded::File& file : files) {
        const std::string name(file.name);
        presets.push_back({name, summary(name)});
    }
    std::sort(presets.begin(), presets.end(),
              [](const Preset& a, const Preset& b) { return a.name < b.name; });
    return presets;
}

}  // namespace

std::vector<Preset> model_presets() {
    return presets_of(embedded::models(), [](const std::string& name) {
        return summary_of(read_model(json{{"preset", name}}, "", LoweringOptions{}, {}));
    });
}

std::vector<Preset> topology_presets() {
    // Machines of one's own first, then cloud by cloud: the provider leads the summary, so that a list of
    // many types shows where each is to be had.
    std::vector<std::pair<std::string, Preset>> by_provider;
    for (const embedded::File& file : embedded::topologies()) {
        const std::string provider = said_of(file, "provider"), fabric = said_of(file, "fabric");
        const std::string name(file.name);
        std::string summary = summary_of(read_cluster(json{{"topology", name}}, {}));
        if (!fabric.empty()) summary += ", " + fabric;
        by_provider.push_back({provider, {name, provider.empty() ? summary : provider + ": " + summary}});
    }
    std::sort(by_provider.begin(), by_provider.end(), [](const auto& a, const auto& b) {
        return std::tie(a.first, a.second.name) < std::tie(b.first, b.second.name);
    });
    std::vector<Preset> presets;
    for (auto& [provider, preset] : by_provider) presets.push_back(std::move(preset));
    return presets;
}

std::vector<Preset> gpu_presets() {
    return presets_of(embedded::gpus(),
                      [](const std::string& name) { return summary_of(read_gpu(name, {})); });
}

std::vector<Preset> engine_presets() {
    std::vector<Preset> presets;
    for (const BuiltEngine& engine : built_engines())
        presets.push_back({std::string(to_string(engine.kind)), engine.summary});
    return presets;
}

std::string presets_json(std::string_view what, const std::vector<Preset>& presets, int indent) {
    nlohmann::ordered_json out;
    out["schema"] = 1;
    out["kind"] = "list";
    out["what"] = what;
    out["entries"] = nlohmann::ordered_json::array();
    for (const Preset& preset : presets)
        out["entries"].push_back({{"name", preset.name}, {"summary", preset.summary}});
    return out.dump(indent);
}

}  // namespace zeroplan
