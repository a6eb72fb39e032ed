#include <algorithm>
#include <array>

#include "import/accelerate_parts.hpp"

namespace zeroplan {
namespace {

/// source: accelerate/utils/constants.py, FSDP_SHARDING_STRATEGY; its numbers start at 1
struct Strategy {
    std::string_view name;
    std::uint32_t stage;
    bool hybrid;
};
constexpr std::array strategies{Strategy{"FULL_SHARD", 3, false}, Strategy{"SHARD_GRAD_OP", 2, false},
                                Strategy{"NO_SHARD", 0, false}, Strategy{"HYBRID_SHARD", 3, true},
                                Strategy{"HYBRID_SHARD_ZERO2", 2, true}};

/// fsdp_config's keys come with or without "fsdp_" in front (accelerate/commands/launch.py adds it).
class FsdpKeys {
public:
    explicit FsdpKeys(const YamlSection& section) : section_(&section) {}
    std::string key(const std::string& name) const {
        return section_->has("fsdp_" + name) || !section_->has(name) ? "fsdp_" + name : name;
    }
    std::optional<std::string> text(const std::string& name) const { return section_->text(key(name)); }
    std::optional<bool> flag(const std::string& name) const { return section_->flag(key(name)); }
    const YamlSection* operator->() const { return section_; }

private:
    const YamlSection* section_;
};

std::string upper(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return text;
}

const Strategy& find_strategy(const FsdpKeys& fsdp, const std::string& name, const std::string& word) {
    const std::string wanted = upper(word);
    for (std::size_t i = 0; i < strategies.size(); ++i)
        if (strategies[i].name == wanted || std::to_string(i + 1) == wanted) return strategies[i];
    std::vector<std::string_view> known;
    for (const Strategy& strategy : strategies) known.push_back(strategy.name);
    fsdp->fail_word(fsdp.key(name), word, known);
}

/// States the stage and, for hybrid strategies, the machine as shard group.
void import_strategy(const FsdpKeys& fsdp, std::uint64_t processes_per_machine) {
    std::string name = "sharding_strategy";
    auto word = fsdp.text(name);
    if (!word) word = fsdp.text(name = "reshard_after_forward");
    if (!word) fsdp->note(Finding::resolved, "fsdp_sharding_strategy", "absent: FULL_SHARD");
    const Strategy& strategy = find_strategy(fsdp, name, word.value_or("FULL_SHARD"));
    const std::string key = fsdp.key(name);
    fsdp->state("/training/zero_stage", std::to_string(strategy.stage), key);
    if (!strategy.hybrid) return;
    if (processes_per_machine == 0) {
        ask(fsdp->import(), "/training/shard_group", fsdp->name(key), fsdp->line(key),
            "shards within a machine, whose processes are not stated", "tell them with --shard-group");
        return;
    }
    fsdp->state("/training/shard_group", std::to_string(processes_per_machine), key);
    fsdp->note(
        Finding::warning, key,
        fmt::format("shards within a machine and replicates over machines: states are divided by {}, more "
                    "machines make them no smaller",
                    processes_per_machine));
}

void import_reshard(const FsdpKeys& fsdp) {
    const bool reshard = fsdp.flag("reshard_after_forward").value_or(true);
    fsdp->state("/training/zero_stage", reshard ? "3" : "2", fsdp.key("reshard_after_forward"));
    if (fsdp.text("sharding_strategy"))
        fsdp->note(Finding::ignored, fsdp.key("sharding_strategy"), "has no meaning for FSDP2",
                   "use fsdp_reshard_after_forward, and parallelism_config for groups");
}

void import_wrap(const FsdpKeys& fsdp) {
    const std::string key = fsdp.key("auto_wrap_policy");
    const auto word = fsdp.text("auto_wrap_policy");
    if (!word || upper(*word) == "TRANSFORMER_BASED_WRAP") return;
    if (upper(*word) == "NO_WRAP")
        fsdp->state_word("/training/fsdp/wrap", "root", key);
    else if (upper(*word) == "SIZE_BASED_WRAP")
        fsdp->note(Finding::warning, key, "units by size are not modelled: one unit a layer is planned",
                   "TRANSFORMER_BASED_WRAP makes the two the same");
    else
        fsdp->fail_word(
            key, *word,
            std::array<std::string_view, 3>{"TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP"});
}

void import_prefetch(const FsdpKeys& fsdp) {
    constexpr std::array<std::string_view, 3> known{"BACKWARD_PRE", "BACKWARD_POST", "NO_PREFETCH"};
    constexpr std::array<const char*, 3> words{"pre", "post", "none"};
    const std::string key = fsdp.key("backward_prefetch");
    if (fsdp.flag("forward_prefetch") == true)
        fsdp->note(Finding::warning, fsdp.key("forward_prefetch"),
                   "explicit forward prefetch is not modelled: it may hold one more unit");
    const auto word = fsdp.text("backward_prefetch");
    if (!word) return;
    const auto found = std::find(known.begin(), known.end(), upper(*word));
    if (found == known.end()) fsdp->fail_word(key, *word, known);
    fsdp->state_word("/training/fsdp/backward_prefetch",
                     words[static_cast<std::size_t>(found - known.begin())], key);
}

/// CPUOffload of FSDP moves parameters and, with them, gradients and the optimizer step to the host.
void import_offload(const FsdpKeys& fsdp) {
    if (fsdp.flag("offload_params") != true) return;
    fsdp->state_word("/training/offload_parameters", "cpu", fsdp.key("offload_params"));
    fsdp->note(Finding::resolved, fsdp.key("offload_params"),
               "parameters, gradients and optimizer states live on the host, and the step runs there");
}

/// In mixed precision accelerate reduces gradients in the compute dtype. source:
/// FullyShardedDataParallelPlugin.set_mixed_precision: param_dtype, reduce_dtype = the same
void import_reduce_dtype(const YamlSection& config) {
    const auto word = config.text("mixed_precision");
    if (word == "bf16" || word == "fp16")
        config.state_word("/training/reduce_dtype", *word, "mixed_precision");
}

void import_parallelism(const YamlSection& config) {
    const auto section = config.section("parallelism_config");
    if (!section) return;
    struct Degree {
        const char *key, *pointer;
    };
    for (const Degree& degree : {Degree{"parallelism_config_tp_size", "/training/tensor_parallel"},
                                 Degree{"parallelism_config_cp_size", "/training/context_parallel"},
                                 Degree{"parallelism_config_dp_shard_size", "/training/shard_group"}}) {
        const auto size = section->integer(degree.key);
        if (size && *size > 1) section->state(degree.pointer, std::to_string(*size), degree.key);
    }
}

}  // namespace

void import_fsdp_plugin(const YamlSection& config, std::uint64_t processes_per_machine) {
    const auto section = config.section("fsdp_config");
    if (!section) {
        config.state_word("/training/engine", "fsdp1", "distributed_type");
        config.note(Finding::resolved, "distributed_type", "no fsdp_config: FSDP1 with FULL_SHARD");
        import_reduce_dtype(config);
        return;
    }
    const FsdpKeys fsdp(*section);
    const std::string version = fsdp.text("version").value_or("1");
    if (version != "1" && version != "2")
        section->fail(fsdp.key("version"), fmt::format("fsdp_version cannot be {}", version), "1 or 2");
    section->state_word("/training/engine", version == "2" ? "fsdp2" : "fsdp1", fsdp.key("version"));
    if (version == "2")
        import_reshard(fsdp);
    else
        import_strategy(fsdp, processes_per_machine);
    import_wrap(fsdp);
    if (version == "1") import_prefetch(fsdp);
    import_offload(fsdp);
    if (fsdp.flag("activation_checkpointing") == true)
        section->state_word("/training/recompute", "full", fsdp.key("activation_checkpointing"));
    import_reduce_dtype(config);
    if (version == "2") import_parallelism(config);
}

}  // namespace zeroplan
