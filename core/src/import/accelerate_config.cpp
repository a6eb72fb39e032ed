#include <algorithm>
#include <array>

#include "import/accelerate_parts.hpp"
#include "nearest.hpp"

namespace zeroplan {
namespace {

/// Fields of ClusterConfig and BaseConfig, and the old names that are converted; accelerate refuses others.
/// source: accelerate/commands/config/config_args.py
constexpr std::string_view known_keys[] = {"compute_environment",
                                           "distributed_type",
                                           "mixed_precision",
                                           "use_cpu",
                                           "debug",
                                           "num_processes",
                                           "machine_rank",
                                           "num_machines",
                                           "gpu_ids",
                                           "main_process_ip",
                                           "main_process_port",
                                           "rdzv_backend",
                                           "same_network",
                                           "main_training_function",
                                           "enable_cpu_affinity",
                                           "fp8_config",
                                           "deepspeed_config",
                                           "fsdp_config",
                                           "parallelism_config",
                                           "megatron_lm_config",
                                           "mpirun_config",
                                           "downcast_bf16",
                                           "tpu_name",
                                           "tpu_zone",
                                           "tpu_use_cluster",
                                           "tpu_use_sudo",
                                           "command_file",
                                           "commands",
                                           "tpu_vm",
                                           "tpu_env",
                                           "dynamo_config",
                                           "dynamo_backend",
                                           "fp16",
                                           "ipex_config",
                                           "tp_config"};

constexpr std::string_view types[] = {"NO", "MULTI_GPU", "FSDP", "DEEPSPEED", "MEGATRON_LM"};

void note_unknown_keys(const YamlSection& config) {
    for (const std::string& key : config.keys()) {
        if (std::find(std::begin(known_keys), std::end(known_keys), key) != std::end(known_keys)) continue;
        const auto near = nearest(key, std::span<const std::string_view>(known_keys));
        config.note(Finding::rejected, key, "accelerate refuses unknown keys (\"had unknown keys\")",
                    near ? fmt::format("did you mean \"{}\"?", *near) : "remove it");
    }
}

/// Processes of all machines and machines.
struct World {
    std::uint64_t processes = 1, machines = 1;
};

std::optional<World> read_world(const YamlSection& config) {
    const auto processes = config.integer("num_processes");
    const std::int64_t machines = config.integer("num_machines").value_or(1);
    if (!processes || *processes == -1) {
        ask(config.import(), "/cluster", config.name("num_processes"), config.line("num_processes"),
            "the number of processes of all machines is not stated", "tell it with --gpus");
        return std::nullopt;
    }
    constexpr std::int64_t most = 1'000'000;
    if (*processes < 1 || *processes > most)
        config.fail("num_processes", fmt::format("\"num_processes\" is {}", *processes),
                    "the processes of all machines together, one a GPU");
    if (machines < 1 || machines > *processes)
        config.fail("num_machines",
                    fmt::format("{} machines cannot share {} processes", machines, *processes),
                    "num_processes counts the processes of all machines together, not of one");
    if (*processes % machines != 0)
        config.fail("num_processes",
                    fmt::format("{} processes do not spread evenly over {} machines", *processes, machines),
                    fmt::format("{} or {} would", *processes / machines * machines,
                                (*processes / machines + 1) * machines));
    return World{static_cast<std::uint64_t>(*processes), static_cast<std::uint64_t>(machines)};
}

void import_world(const YamlSection& config, const World& world) {
    config.state("/cluster/gpus_used", std::to_string(world.processes), "num_processes");
    config.state("/cluster/nodes", std::to_string(world.machines), "num_machines");
    if (world.machines > 1)
        config.state("/cluster/gpus_per_node", std::to_string(world.processes / world.machines),
                     "num_processes");
    figure(config.import(), "world_size", static_cast<double>(world.processes), "ranks",
           fmt::format("num_processes counts all machines; {} a machine", world.processes / world.machines));
}

void import_mixed_precision(const YamlSection& config) {
    constexpr std::string_view known[] = {"no", "fp16", "bf16", "fp8"};
    std::string word = config.text("mixed_precision").value_or("no");
    if (!config.has("mixed_precision") && config.flag("fp16") == true) word = "fp16";
    if (std::find(std::begin(known), std::end(known), word) == std::end(known))
        config.fail_word("mixed_precision", word, known);
    const std::string dtype = word == "no" ? "fp32" : word;
    config.state_word("/training/compute_dtype", dtype, "mixed_precision");
    if (!config.has("mixed_precision")) config.note(Finding::resolved, "mixed_precision", "absent: fp32");
}

/// The distributed_type; MULTI_XPU and the like are no GPUs of the catalogue.
std::string read_type(const YamlSection& config) {
    const auto type = config.text("distributed_type");
    if (!type)
        fail_at(config.import(), 0, "",
                "\"distributed_type\" is missing: accelerate refuses a file without it",
                "one of: NO, MULTI_GPU, FSDP, DEEPSPEED, MEGATRON_LM");
    if (std::find(std::begin(types), std::end(types), *type) == std::end(types))
        config.fail_word("distributed_type", *type, types);
    return *type;
}

}  // namespace

Import import_accelerate(std::string_view text, const std::string& file, const ImportContext& context) {
    Import import;
    import.kind = ImportKind::accelerate_config;
    import.file = import.scenario.file = file;
    const YamlSection config = parse_yaml(import, text);
    note_unknown_keys(config);
    const std::string type = read_type(config);
    const std::optional<World> world = read_world(config);
    if (world) import_world(config, *world);
    if (type == "DEEPSPEED") {
        ImportContext known = context;
        if (world && !known.ranks) known.ranks = world->processes;
        import_deepspeed_plugin(config, known);
    } else {
        import_mixed_precision(config);
        if (type == "NO") config.state_word("/training/engine", "single", "distributed_type");
        if (type == "MULTI_GPU") config.state_word("/training/engine", "ddp", "distributed_type");
        if (type == "FSDP") import_fsdp_plugin(config, world ? world->processes / world->machines : 0);
        if (type == "MEGATRON_LM") import_megatron_plugin(config);
    }
    std::stable_sort(import.findings.begin(), import.findings.end(),
                     [](const ImportFinding& a, const ImportFinding& b) { return a.line < b.line; });
    return import;
}

}  // namespace zeroplan
