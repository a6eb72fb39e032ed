#include "import/launch_flags.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/ranges.h>

#include "import/import_builder.hpp"
#include "import/launch_megatron.hpp"
#include "import/text_lines.hpp"
#include "printable.hpp"
#include "zeroplan/words.hpp"

namespace zeroplan {
namespace {

struct OptimizerName {
    std::string_view name;
    Optimizer optimizer;
};
/// source: transformers/training_args.py, OptimizerNames
constexpr std::array optimizers{OptimizerName{"adamw_hf", Optimizer::adamw},
                                OptimizerName{"adamw_torch", Optimizer::adamw},
                                OptimizerName{"adamw_torch_fused", Optimizer::adamw},
                                OptimizerName{"adamw_apex_fused", Optimizer::adamw},
                                OptimizerName{"paged_adamw_32bit", Optimizer::adamw},
                                OptimizerName{"adamw_bnb_8bit", Optimizer::adamw_8bit},
                                OptimizerName{"adamw_8bit", Optimizer::adamw_8bit},
                                OptimizerName{"paged_adamw_8bit", Optimizer::adamw_8bit},
                                OptimizerName{"adamw_torch_8bit", Optimizer::adamw_8bit},
                                OptimizerName{"adamw_torch_4bit", Optimizer::adamw_4bit},
                                OptimizerName{"adafactor", Optimizer::adafactor},
                                OptimizerName{"adagrad", Optimizer::adagrad},
                                OptimizerName{"sgd", Optimizer::sgd},
                                OptimizerName{"lion_32bit", Optimizer::lion}};

struct CountFlag {
    const char* figure;
    const char* pointer;
    std::vector<const char*> names;
};

void import_counts(Import& import, const ShellLine& line, const LaunchFlags& flags) {
    const std::array counts{
        CountFlag{"micro_batch_size",
                  "/training/micro_batch_size",
                  {"--per_device_train_batch_size", "--micro_batch_size", "--train_batch_size"}},
        CountFlag{"gradient_accumulation_steps",
                  "/training/gradient_accumulation_steps",
                  {"--gradient_accumulation_steps"}},
        CountFlag{"sequence_length",
                  "/training/sequence_length",
                  {"--max_seq_length", "--max_length", "--model_max_length", "--cutoff_len", "--block_size",
                   "--seq_length"}}};
    for (const CountFlag& count : counts) {
        const auto text = flags.value(count.names);
        if (!text) continue;
        std::uint64_t value = 0;
        const auto parsed = std::from_chars(text->data(), text->data() + text->size(), value);
        if (parsed.ec != std::errc{} || parsed.ptr != text->data() + text->size() || value == 0 ||
            value > 1ULL << 30) {
            note(import, Finding::missing, count.figure, line.number,
                 fmt::format("\"{}\" is no number known here", text->substr(0, 60)));
            continue;
        }
        figure(import, count.figure, static_cast<double>(value), "1", fmt::format("line {}", line.number));
        state(import, count.pointer, std::to_string(value), line.number, count.figure);
    }
}

void import_optimizer(Import& import, const ShellLine& line, const LaunchFlags& flags) {
    const auto name = flags.value({"--optim"});
    if (!name) return;
    for (const OptimizerName& known : optimizers)
        if (known.name == *name) {
            state_word(import, "/training/optimizer", to_string(known.optimizer), line.number, "--optim");
            return;
        }
    note(import, Finding::missing, "--optim", line.number,
         fmt::format("the states of \"{}\" are not known here", name->substr(0, 60)),
         "name the optimizer with the most similar states with --optimizer");
}

/// --fsdp "full_shard auto_wrap offload". source: transformers/training_args.py, FSDPOption
void import_fsdp(Import& import, const ShellLine& line, const LaunchFlags& flags) {
    const auto options = flags.value({"--fsdp"});
    if (!options) return;
    state_word(import, "/training/engine", "fsdp1", line.number, "--fsdp");
    for (const std::string& option : words_of(*options)) {
        if (option == "full_shard") state(import, "/training/zero_stage", "3", line.number, "--fsdp");
        if (option == "shard_grad_op") state(import, "/training/zero_stage", "2", line.number, "--fsdp");
        if (option == "no_shard") state(import, "/training/zero_stage", "0", line.number, "--fsdp");
        if (option == "offload")
            state_word(import, "/training/offload_parameters", "cpu", line.number, "--fsdp");
        if (option.starts_with("hybrid_shard"))
            note(import, Finding::missing, "--fsdp", line.number,
                 "shards within a node and replicates over nodes",
                 "tell the ranks of a node with --shard-group");
    }
}

}  // namespace

namespace {

/// The name of --name or --name=value with _ for every -.
std::string name_of(std::string_view word) {
    std::string name(word.substr(0, word.find('=')));
    for (std::size_t i = 2; i < name.size(); ++i)
        if (name[i] == '-') name[i] = '_';
    return name;
}

bool is_flag(std::string_view word) {
    return word.size() > 2 && word.starts_with("--") && word[2] != '-';
}

void note_unread(Import& import, const ShellLine& line, const LaunchFlags& flags) {
    constexpr std::size_t most_shown = 60;
    std::vector<std::string> unread = flags.unread();
    if (unread.empty()) return;
    const std::size_t all = unread.size();
    if (all > most_shown) unread.resize(most_shown);
    note(import, Finding::warning, "", line.number,
         fmt::format("not read: {}{}", printable(fmt::format("{}", fmt::join(unread, ", "))),
                     all > most_shown ? fmt::format(" and {} more", all - most_shown) : ""),
         "what of these changes the plan has to be told with zeroplan's own flags or --set");
}

/// --deepspeed FILE of transformers; DeepSpeed's own --deepspeed is a switch beside --deepspeed_config FILE.
void import_deepspeed_flag(Import& import, const ShellLine& line, const LaunchFlags& flags) {
    const bool on = flags.has("--deepspeed");
    const auto config = flags.value({"--deepspeed_config", "--deepspeed"});
    if (!on && !config) return;
    state_word(import, "/training/engine", "deepspeed", line.number, "--deepspeed");
    if (!config || config->starts_with('-')) return;
    import.deepspeed_config = *config;
    note(import, Finding::missing, "--deepspeed", line.number,
         fmt::format("the DeepSpeed configuration stands in {}", config->substr(0, 200)),
         fmt::format("give it, too: --deepspeed {}", config->substr(0, 200)));
}

}  // namespace

std::size_t LaunchFlags::find(const char* name) const {
    const std::string wanted = name_of(name);
    for (std::size_t i = first_; i < words_->size(); ++i)
        if ((*words_)[i].starts_with('-') && name_of((*words_)[i]) == wanted) {
            read_.insert(i);
            return i;
        }
    return words_->size();
}

std::optional<std::string> LaunchFlags::value(const std::vector<const char*>& names) const {
    for (const char* name : names) {
        const std::size_t i = find(name);
        if (i == words_->size()) continue;
        const std::string& word = (*words_)[i];
        if (const auto equals = word.find('='); equals != std::string::npos) return word.substr(equals + 1);
        if (i + 1 < words_->size()) return (*words_)[i + 1];
    }
    return std::nullopt;
}

std::vector<std::string> LaunchFlags::values(const char* name) const {
    std::size_t i = find(name);
    if (i == words_->size()) return {};
    std::vector<std::string> found;
    const std::string& word = (*words_)[i];
    if (const auto equals = word.find('='); equals != std::string::npos)
        found.push_back(word.substr(equals + 1));
    while (++i < words_->size() && !is_flag((*words_)[i])) found.push_back((*words_)[i]);
    return found;
}

bool LaunchFlags::is_on(const char* name) const {
    const std::size_t i = find(name);
    if (i == words_->size()) return false;
    const std::string& word = (*words_)[i];
    if (word.find('=') != std::string::npos) return !word.ends_with("alse");
    return i + 1 == words_->size() || !(*words_)[i + 1].ends_with("alse");
}

bool LaunchFlags::has(const char* name) const {
    return find(name) != words_->size();
}

std::vector<std::string> LaunchFlags::unread() const {
    std::vector<std::string> found;
    for (std::size_t i = first_; i < words_->size(); ++i) {
        const std::string& word = (*words_)[i];
        if (!is_flag(word) || read_.contains(i)) continue;
        const bool has_value = word.find('=') == std::string::npos && i + 1 < words_->size() &&
                               !(*words_)[i + 1].starts_with('-') && !(*words_)[i + 1].ends_with(".py");
        found.push_back(has_value ? word + " " + (*words_)[i + 1] : word);
    }
    return found;
}

void read_launcher_flags(const LaunchFlags& flags) {
    for (const char* name :
         {"--nnodes",           "--nproc_per_node",    "--node_rank",    "--master_addr",   "--master_port",
          "--rdzv_backend",     "--rdzv_endpoint",     "--rdzv_id",      "--rdzv_conf",     "--max_restarts",
          "--monitor_interval", "--standalone",        "--tee",          "--redirects",     "--log_dir",
          "--local_addr",       "--start_method",      "--num_machines", "--num_processes", "--machine_rank",
          "--main_process_ip",  "--main_process_port", "--num_nodes",    "--num_gpus",      "--hostfile",
          "--launcher",         "--include",           "--exclude",      "--no_python",     "--module",
          "--multi_gpu",        "--use_env",           "--local_rank"})
        (void)flags.has(name);
}

bool import_precision(Import& import, const ShellLine& line, const LaunchFlags& flags) {
    const bool bf16 = flags.is_on("--bf16"), fp16 = flags.is_on("--fp16");
    if (bf16 && fp16)
        note(import, Finding::rejected, "--bf16", line.number,
             "--bf16 and --fp16 together are refused: one dtype computes", "keep one of the two");
    else if (bf16 || fp16)
        state_word(import, "/training/compute_dtype", bf16 ? "bf16" : "fp16", line.number,
                   bf16 ? "--bf16" : "--fp16");
    return bf16 || fp16;
}

void import_training_flags(Import& import, const ShellLine& line) {
    const LaunchFlags flags(line.words, 0);
    read_launcher_flags(flags);
    import_counts(import, line, flags);
    const bool has_precision = import_precision(import, line, flags);
    if (flags.is_on("--gradient_checkpointing"))
        state_word(import, "/training/recompute", "full", line.number, "--gradient_checkpointing");
    import_optimizer(import, line, flags);
    import_fsdp(import, line, flags);
    import_deepspeed_flag(import, line, flags);
    if (is_megatron(line))
        import_megatron_flags(import, line, flags, has_precision);
    else if (const auto model = flags.value({"--model_name_or_path", "--model"}))
        note(import, Finding::missing, "--model", line.number,
             fmt::format("the model is {}", model->substr(0, 200)),
             "name it with --model: a preset (zeroplan list models) or its config.json");
    note_unread(import, line, flags);
}

}  // namespace zeroplan
