#include <algorithm>
#include <array>
#include <charconv>

#include "import/import_builder.hpp"
#include "import/import_readers.hpp"
#include "import/launch_environment.hpp"
#include "import/launch_flags.hpp"
#include "import/shell_words.hpp"

namespace zeroplan {
namespace {

constexpr std::uint64_t most_ranks = 1'000'000;

/// What #SBATCH lines ask for.
struct Allocation {
    std::optional<std::uint64_t> nodes, tasks, tasks_per_node, gpus_per_node, gpus;
    std::size_t tasks_line = 0;
};

std::optional<std::uint64_t> number(std::string_view text) {
    std::uint64_t value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || value == 0 ||
        value > most_ranks)
        return std::nullopt;
    return value;
}

/// "8", "h100:8", "gpu:8", "gpu:h100:8"
std::optional<std::uint64_t> gpu_count(std::string_view text) {
    return number(text.substr(text.rfind(':') == text.npos ? 0 : text.rfind(':') + 1));
}

/// Slurm's names, long and short. source: sbatch(1)
void read_directive(Allocation& allocation, const ShellLine& line) {
    const LaunchFlags flags(line.words, 1);
    if (const auto text = flags.value({"--nodes", "-N"})) allocation.nodes = number(*text);
    if (const auto text = flags.value({"--ntasks", "-n"})) allocation.tasks = number(*text);
    if (const auto text = flags.value({"--ntasks-per-node"})) {
        allocation.tasks_per_node = number(*text);
        allocation.tasks_line = line.number;
    }
    if (const auto text = flags.value({"--gpus-per-node", "--gres"}))
        allocation.gpus_per_node = gpu_count(*text);
    if (const auto text = flags.value({"--gpus", "-G"})) allocation.gpus = gpu_count(*text);
}

/// What Slurm sets inside a job. source: sbatch(1), "OUTPUT ENVIRONMENT VARIABLES"
void set_slurm_variables(const Allocation& allocation, std::map<std::string, std::string>& variables) {
    const auto set = [&](const char* name, const std::optional<std::uint64_t>& value) {
        if (value) variables[name] = std::to_string(*value);
    };
    for (const char* name : {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"}) set(name, allocation.nodes);
    for (const char* name : {"SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"})
        set(name, allocation.gpus_per_node);
    for (const char* name : {"SLURM_NTASKS", "SLURM_NPROCS"}) set(name, allocation.tasks);
    set("SLURM_NTASKS_PER_NODE", allocation.tasks_per_node);
}

/// A launcher's command and how it counts ranks.
struct World {
    std::uint64_t nodes = 1, per_node = 1;
    std::string how;  ///< "torchrun: 4 nodes × 8 processes"
};

/// GPUs that a process sees: CUDA_VISIBLE_DEVICES, else what Slurm gives a node.
std::optional<std::uint64_t> visible_gpus(const std::map<std::string, std::string>& variables,
                                          const Allocation& allocation) {
    const auto devices = variables.find("CUDA_VISIBLE_DEVICES");
    if (devices == variables.end() || devices->second.empty()) return allocation.gpus_per_node;
    return 1 + static_cast<std::uint64_t>(std::count(devices->second.begin(), devices->second.end(), ','));
}

/// The value of a flag that counts something, 1 without it.
std::uint64_t counted(const Import& import, const ShellLine& line, const LaunchFlags& flags,
                      std::initializer_list<const char*> names) {
    const auto text = flags.value(names);
    if (!text) return 1;
    if (const auto value = number(*text)) return *value;
    fail_at(import, line.number, *names.begin(),
            fmt::format("\"{}\" is no number known here", text->substr(0, 60)),
            text->find('$') != std::string::npos
                ? "replace the variable by its value, or tell the number of ranks with --gpus"
                : fmt::format("a whole number from 1 to {}", most_ranks));
}

/// source: torch/distributed/run.py
World torchrun_world(const Import& import, const ShellLine& line, const LaunchFlags& flags,
                     const std::optional<std::uint64_t>& visible) {
    World world;
    world.nodes = counted(import, line, flags, {"--nnodes"});
    const auto processes = flags.value({"--nproc_per_node", "--nproc-per-node"});
    if (processes == "gpu" || processes == "auto") {
        if (!visible)
            fail_at(
                import, line.number, "--nproc_per_node",
                fmt::format("\"{}\" is one process for each GPU of the machine, whose number stands nowhere",
                            *processes),
                "tell the number of ranks with --gpus");
        world.per_node = *visible;
    } else {
        world.per_node = counted(import, line, flags, {"--nproc_per_node", "--nproc-per-node"});
    }
    world.how = fmt::format("torchrun: {} nodes × {} processes{}", world.nodes, world.per_node,
                            processes == "gpu" ? " (one for each visible GPU)" : "");
    return world;
}

/// source: accelerate/commands/launch.py: num_processes counts all machines
World accelerate_world(const Import& import, const ShellLine& line, const LaunchFlags& flags) {
    World world;
    world.nodes = counted(import, line, flags, {"--num_machines"});
    const std::uint64_t all = counted(import, line, flags, {"--num_processes"});
    if (all % world.nodes != 0)
        fail_at(import, line.number, "--num_processes",
                fmt::format("{} processes do not spread evenly over {} machines", all, world.nodes));
    world.per_node = all / world.nodes;
    world.how = fmt::format("accelerate launch: {} processes on {} machines", all, world.nodes);
    return world;
}

/// source: deepspeed/launcher/runner.py
World deepspeed_world(const Import& import, const ShellLine& line, const LaunchFlags& flags,
                      const Allocation& allocation, const std::optional<std::uint64_t>& visible) {
    World world;
    world.nodes = flags.value({"--num_nodes"}) ? counted(import, line, flags, {"--num_nodes"})
                                               : allocation.nodes.value_or(1);
    if (flags.value({"--num_gpus"}))
        world.per_node = counted(import, line, flags, {"--num_gpus"});
    else if (visible)
        world.per_node = *visible;
    else
        fail_at(import, line.number, "deepspeed",
                "takes every GPU of the machines, whose number stands nowhere",
                "tell the number of ranks with --gpus, or add --num_gpus");
    world.how = fmt::format("deepspeed: {} nodes × {} GPUs", world.nodes, world.per_node);
    return world;
}

/// One task a rank, as srun starts them.
std::optional<World> task_world(const Allocation& allocation) {
    if (!allocation.tasks && !allocation.tasks_per_node) return std::nullopt;
    World world;
    world.nodes = allocation.nodes.value_or(1);
    world.per_node = allocation.tasks_per_node ? *allocation.tasks_per_node
                                               : std::max<std::uint64_t>(*allocation.tasks / world.nodes, 1);
    world.how = fmt::format("srun: {} nodes × {} tasks", world.nodes, world.per_node);
    return world;
}

std::size_t word_index(const ShellLine& line, std::string_view name) {
    const auto found = std::find_if(line.words.begin(), line.words.end(), [&](const std::string& word) {
        return word == name || word.ends_with("/" + std::string(name));
    });
    return static_cast<std::size_t>(found - line.words.begin());
}

std::size_t launcher_index(const ShellLine& line) {
    for (const char* name :
         {"torchrun", "torch.distributed.run", "torch.distributed.launch", "accelerate", "deepspeed"})
        if (const std::size_t index = word_index(line, name); index < line.words.size()) return index;
    return line.words.size();
}

std::optional<World> read_launch(Import& import, const ShellLine& line, const Allocation& allocation,
                                 const std::map<std::string, std::string>& variables) {
    const std::size_t at = launcher_index(line);
    if (at == line.words.size()) return std::nullopt;
    const LaunchFlags flags(line.words, at + 1);
    const auto visible = visible_gpus(variables, allocation);
    const std::string& launcher = line.words[at];
    World world;
    if (launcher.ends_with("accelerate"))
        world = accelerate_world(import, line, flags);
    else if (launcher.ends_with("deepspeed"))
        world = deepspeed_world(import, line, flags, allocation, visible);
    else
        world = torchrun_world(import, line, flags, visible);
    if (allocation.tasks_per_node)
        note(import, Finding::resolved, "--ntasks-per-node", allocation.tasks_line,
             fmt::format("{} a node counts the launcher's tasks, not ranks", *allocation.tasks_per_node));
    return world;
}

/// The degree that the import states at `pointer`, 1 without one.
std::uint64_t degree(const Import& import, std::string_view pointer) {
    for (const Setting& setting : import.scenario.settings)
        if (setting.pointer == pointer) return number(setting.json_value).value_or(1);
    return 1;
}

/// Sequences and tokens of a step, from what the line states of its batch.
void state_batch(Import& import, std::uint64_t ranks) {
    const auto value = [&](const char* name) { return import.figure(name); };
    if (!value("global_batch")) {
        if (!value("micro_batch_size") && !value("gradient_accumulation_steps")) return;
        const std::uint64_t inner =
            checked_product(checked_product(degree(import, "/training/tensor_parallel"),
                                            degree(import, "/training/pipeline_parallel"), "ranks"),
                            degree(import, "/training/context_parallel"), "ranks");
        if (ranks % inner != 0) return;
        const double micro = value("micro_batch_size").value_or(1),
                     steps = value("gradient_accumulation_steps").value_or(1);
        figure(import, "global_batch", micro * steps * static_cast<double>(ranks / inner), "sequences",
               "micro-batch × accumulation steps × data-parallel ranks");
    }
    if (const auto tokens = value("sequence_length"))
        figure(import, "tokens_per_step", *value("global_batch") * *tokens, "tokens");
}

void state_world(Import& import, const World& world, std::size_t line) {
    const std::uint64_t ranks = checked_product(world.nodes, world.per_node, "ranks");
    figure(import, "world_size", static_cast<double>(ranks), "ranks", world.how);
    state(import, "/cluster/gpus_used", std::to_string(ranks), line, "world size");
    state(import, "/cluster/nodes", std::to_string(world.nodes), line, "nodes");
    if (world.nodes > 1)
        state(import, "/cluster/gpus_per_node", std::to_string(world.per_node), line, "processes a node");
    state_batch(import, ranks);
}

/// The last command that starts a Python script, as srun does with one task a rank.
const ShellLine* python_line(const std::vector<ShellLine>& lines) {
    const ShellLine* found = nullptr;
    for (const ShellLine& line : lines)
        if (std::any_of(line.words.begin(), line.words.end(),
                        [](const std::string& word) { return word.ends_with(".py"); }))
            found = &line;
    return found;
}

}  // namespace

Import import_launch(std::string_view text, const std::string& file) {
    Import import;
    import.kind = ImportKind::launch_script;
    import.file = import.scenario.file = file;
    std::map<std::string, std::string> variables;
    // Directives first: Slurm knows them before the first command runs.
    Allocation allocation;
    std::map<std::string, std::string> scratch;
    for (const ShellLine& line : shell_lines(text, scratch))
        if (line.words.front() == "SBATCH") read_directive(allocation, line);
    set_slurm_variables(allocation, variables);
    std::optional<World> world;
    std::size_t world_line = 0;
    const std::vector<ShellLine> lines = shell_lines(text, variables);
    for (const ShellLine& line : lines) {
        if (line.words.front() == "SBATCH") continue;
        if (auto found = read_launch(import, line, allocation, variables)) {
            if (world)
                note(import, Finding::warning, "", line.number, "a second launch line: this one counts");
            world = std::move(found);
            world_line = line.number;
            import_training_flags(import, line);
        }
    }
    if (!world) {
        world = task_world(allocation);
        if (const ShellLine* script = world ? python_line(lines) : nullptr)
            import_training_flags(import, *script);
    }
    const Environment environment = environment_of(lines);
    if (!world && environment.empty())
        fail_at(
            import, 0, "", "no launch line that tells the number of ranks",
            "torchrun, python -m torch.distributed.run, accelerate launch, deepspeed, or #SBATCH --ntasks");
    import_environment(import, environment);
    if (world) state_world(import, *world, world_line);
    return import;
}

}  // namespace zeroplan
