#include "zeroplan/command/what_if_flags.hpp"

#include <array>

#include <CLI/CLI.hpp>

#include "zeroplan/what_if_io.hpp"

namespace zeroplan::command {
namespace {

constexpr const char* straggler_flag = "--straggler";
constexpr const char* slow_link_flag = "--slow-link";

/// A flag with one value, and the setting that it makes.
struct ValueFlag {
    const char* name;
    const char* type;
    Setting (*setting)(const std::string& text, const std::string& origin);
    const char* help;
};

constexpr std::array fabric_flags{
    ValueFlag{
        "--leaf-switches", "NODES:RATIO", leaf_switches_setting,
        "Leaf switches of so many nodes, whose links up have 1 / RATIO of the bandwidth of the NICs below, "
        "as 4:2; without it switches don't block"},
    ValueFlag{
        "--fabric", "KIND", fabric_setting,
        "What joins the nodes: single-switch, rail-optimised:NODES:RATIO (a leaf switch a rail for so many "
        "nodes), fat-tree:NODES:RATIO[:LEAVES:RATIO] (leaf switches, and pods of so many) or "
        "torus:4x4x2[:B/S] (links of a node's NICs, or of so many bytes a second)"},
    ValueFlag{"--placement", "packed|spread|NODES", placement_setting,
              "The job's nodes: leaf after leaf (default), a node of each leaf in turn, or a list as 0-3,8"},
    ValueFlag{"--background", "FILE", background_setting,
              "Scenario of a second job on the same fabric, on nodes that this one leaves free"},
};

Setting gpu_mtbf(const std::string& text, const std::string& origin) {
    return duration_setting("/what_if/failures/gpu_mtbf_s", text, origin);
}
Setting node_mtbf(const std::string& text, const std::string& origin) {
    return duration_setting("/what_if/failures/node_mtbf_s", text, origin);
}
Setting bandwidth(const std::string& text, const std::string& origin) {
    return text_setting("/what_if/failures/checkpoint_bytes_per_second", text, origin);
}
Setting interval(const std::string& text, const std::string& origin) {
    return duration_setting("/what_if/failures/checkpoint_interval_s", text, origin);
}
Setting restart(const std::string& text, const std::string& origin) {
    return duration_setting("/what_if/failures/restart_s", text, origin);
}

constexpr std::array failure_flags{
    ValueFlag{"--gpu-mtbf", "TIME", gpu_mtbf,
              "Mean time between failures of one GPU: seconds, or as 50000h, 30d, 5y"},
    ValueFlag{"--node-mtbf", "TIME", node_mtbf, "Of one node, beside its GPUs"},
    ValueFlag{"--checkpoint-bandwidth", "B/S", bandwidth,
              "Bytes a second that storage takes from all ranks together, as 50e9"},
    ValueFlag{"--checkpoint-interval", "TIME", interval,
              "Work between checkpoints, as 30m; the best one is told in any case"},
    ValueFlag{"--restart-time", "TIME", restart, "From a failure to the first step, loading included"},
};

void add_list(CLI::App& app, const char* name, std::vector<std::string>& texts, const char* type,
              const char* help) {
    app.add_option(name, texts, help)->type_name(type)->allow_extra_args(false)->group("What if");
}

template <std::size_t Count>
void add_values(CLI::App& app, const std::array<ValueFlag, Count>& list, WhatIfFlags& flags,
                const char* group) {
    for (const ValueFlag& flag : list)
        app.add_option_function<std::string>(
               flag.name, [&flags, name = flag.name](const std::string& text) { flags.values[name] = text; },
               flag.help)
            ->type_name(flag.type)
            ->group(group);
}

template <std::size_t Count>
void add_settings(std::vector<Setting>& settings, const std::array<ValueFlag, Count>& list,
                  const WhatIfFlags& flags) {
    for (const ValueFlag& flag : list)
        if (const auto found = flags.values.find(flag.name); found != flags.values.end())
            settings.push_back(flag.setting(found->second, flag.name));
}

}  // namespace

void add_what_if_flags(CLI::App& app, WhatIfFlags& flags) {
    add_list(app, straggler_flag, flags.stragglers, "RANK=FACTOR",
             "The rank computes at this factor of its speed, as 5=0.8; may be given several times");
    add_list(app, slow_link_flag, flags.slow_links, "LINK=FACTOR",
             "A link at this factor of its bandwidth: nic:RANK, gpu:RANK (to the GPUs of its node) or "
             "node:NODE (all its NICs), as nic:5=0.5; may be given several times");
    add_values(app, fabric_flags, flags, "What if");
    add_values(app, failure_flags, flags, "A long run with failures");
}

std::vector<Setting> what_if_settings(const WhatIfFlags& flags) {
    std::vector<Setting> settings;
    if (!flags.stragglers.empty()) settings.push_back(straggler_setting(flags.stragglers, straggler_flag));
    if (!flags.slow_links.empty()) settings.push_back(slow_link_setting(flags.slow_links, slow_link_flag));
    add_settings(settings, fabric_flags, flags);
    add_settings(settings, failure_flags, flags);
    return settings;
}

}  // namespace zeroplan::command
