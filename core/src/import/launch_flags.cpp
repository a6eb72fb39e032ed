#include "import/launch_flags.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "import/import_builder.hpp"
#include "import/text_lines.hpp"
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

std::optional<std::string> LaunchFlags::value(const std::vector<const char*>& names) const {
    for (const char* name : names) {
        const std::string flag = name;
        for (std::size_t i = first_; i < words_->size(); ++i) {
            const std::string& word = (*words_)[i];
            if (word == flag && i + 1 < words_->size()) return (*words_)[i + 1];
            if (word.starts_with(flag + "=")) return word.substr(flag.size() + 1);
        }
    }
    return std::nullopt;
}

bool LaunchFlags::is_on(const char* name) const {
    const std::string flag = name;
    for (std::size_t i = first_; i < words_->size(); ++i) {
        const std::string& word = (*words_)[i];
        if (word.starts_with(flag + "=")) return !word.ends_with("alse");
        if (word == flag) return i + 1 == words_->size() || !(*words_)[i + 1].ends_with("alse");
    }
    return false;
}

void import_training_flags(Import& import, const ShellLine& line) {
    const LaunchFlags flags(line.words, 0);
    import_counts(import, line, flags);
    if (flags.is_on("--bf16"))
        state_word(import, "/training/compute_dtype", "bf16", line.number, "--bf16");
    else if (flags.is_on("--fp16"))
        state_word(import, "/training/compute_dtype", "fp16", line.number, "--fp16");
    if (flags.is_on("--gradient_checkpointing"))
        state_word(import, "/training/recompute", "full", line.number, "--gradient_checkpointing");
    import_optimizer(import, line, flags);
    import_fsdp(import, line, flags);
    if (const auto config = flags.value({"--deepspeed", "--deepspeed_config"})) {
        state_word(import, "/training/engine", "deepspeed", line.number, "--deepspeed");
        note(import, Finding::missing, "--deepspeed", line.number,
             fmt::format("the DeepSpeed configuration stands in {}", config->substr(0, 200)),
             fmt::format("give it, too: --deepspeed {}", config->substr(0, 200)));
    }
    if (const auto model = flags.value({"--model_name_or_path", "--model"}))
        note(import, Finding::missing, "--model", line.number,
             fmt::format("the model is {}", model->substr(0, 200)),
             "name it with --model: a preset (zeroplan list models) or its config.json");
}

}  // namespace zeroplan
