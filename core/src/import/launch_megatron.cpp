#include "import/launch_megatron.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/ranges.h>

#include "import/import_builder.hpp"
#include "printable.hpp"

namespace zeroplan {
namespace {

constexpr std::uint64_t most = 1ULL << 30;

/// A flag and the key of the scenario that its value goes to.
struct Key {
    const char *flag, *pointer;
};
constexpr std::array counts{Key{"--tensor-model-parallel-size", "/training/tensor_parallel"},
                            Key{"--pipeline-model-parallel-size", "/training/pipeline_parallel"},
                            Key{"--num-virtual-stages-per-pipeline-rank", "/training/virtual_pipeline"},
                            Key{"--context-parallel-size", "/training/context_parallel"},
                            Key{"--expert-model-parallel-size", "/training/expert_parallel"},
                            Key{"--expert-tensor-parallel-size", "/training/expert_tensor_parallel"}};
/// Of the engine's own object; Megatron-DeepSpeed has none.
constexpr std::array own_counts{
    Key{"--ddp-bucket-size", "/training/megatron/ddp_bucket_size"},
    Key{"--recompute-num-layers", "/training/megatron/recompute_num_layers"},
    Key{"--num-distributed-optimizer-instances", "/training/megatron/num_distributed_optimizer_instances"}};
constexpr std::array own_words{
    Key{"--transformer-impl", "/training/megatron/transformer_impl"},
    Key{"--recompute-method", "/training/megatron/recompute_method"},
    Key{"--cross-entropy-fusion-impl", "/training/megatron/cross_entropy_fusion_impl"},
    Key{"--main-params-dtype", "/training/megatron/main_params_dtype"},
    Key{"--main-grads-dtype", "/training/megatron/main_grads_dtype"},
    Key{"--exp-avg-dtype", "/training/megatron/exp_avg_dtype"},
    Key{"--exp-avg-sq-dtype", "/training/megatron/exp_avg_sq_dtype"}};
constexpr std::array own_on{
    Key{"--overlap-grad-reduce", "/training/megatron/overlap_grad_reduce"},
    Key{"--overlap-param-gather", "/training/megatron/overlap_param_gather"},
    Key{"--deterministic-mode", "/training/megatron/deterministic_mode"},
    Key{"--use-precision-aware-optimizer", "/training/megatron/use_precision_aware_optimizer"},
    Key{"--tp-comm-overlap", "/training/megatron/tp_comm_overlap"},
    Key{"--ddp-pad-buckets-for-high-nccl-busbw", "/training/megatron/pad_buckets_for_high_nccl_busbw"}};
constexpr std::array own_off{
    Key{"--no-gradient-accumulation-fusion", "/training/megatron/gradient_accumulation_fusion"},
    Key{"--no-masked-softmax-fusion", "/training/megatron/masked_softmax_fusion"},
    Key{"--no-overlap-p2p-communication", "/training/megatron/overlap_p2p_comm"},
    Key{"--no-create-attention-mask-in-dataloader",
        "/training/megatron/create_attention_mask_in_dataloader"}};

/// A word of Megatron's and the scenario's for it.
struct Word {
    std::string_view megatron, own;
};
/// "adam" decays weights as AdamW does, and "sgd" has momentum 0.9, unless told otherwise.
constexpr std::array optimizers{Word{"adam", "adamw"}, Word{"sgd", "sgd_momentum"}, Word{"muon", "muon"},
                                Word{"lion", "lion"}};
constexpr std::array granularities{Word{"full", "full"}, Word{"selective", "selective"}};
constexpr std::array backends{Word{"flash", "flash"}, Word{"fused", "flash"}, Word{"auto", "flash"},
                              Word{"unfused", "eager"}, Word{"local", "eager"}};
constexpr std::array modules{Word{"core_attn", "core_attention"}, Word{"mlp", "mlp"},
                             Word{"layernorm", "norm"},           Word{"moe", "moe"},
                             Word{"moe_act", "moe_activation"},   Word{"mla_up_proj", "mla_up_projection"}};

template <std::size_t n>
std::optional<std::string_view> own_word(const std::array<Word, n>& words, std::string_view word) {
    for (const Word& known : words)
        if (known.megatron == word) return known.own;
    return std::nullopt;
}

template <std::size_t n>
void import_word(Import& import, const ShellLine& line, const LaunchFlags& flags, const Key& key,
                 const std::array<Word, n>& words) {
    const auto text = flags.value({key.flag});
    if (!text) return;
    if (const auto own = own_word(words, *text))
        state_word(import, key.pointer, *own, line.number, key.flag);
    else
        note(import, Finding::missing, key.flag, line.number,
             fmt::format("\"{}\" is not planned here", printable(text->substr(0, 60))),
             fmt::format("tell what is nearest with --set {}=…", key.pointer));
}

void import_counts(Import& import, const ShellLine& line, const LaunchFlags& flags,
                   std::span<const Key> keys) {
    for (const Key& key : keys)
        if (const auto value = count_of(import, line, flags, key.flag))
            state(import, key.pointer, std::to_string(*value), line.number, key.flag);
}

/// Layers of a chunk, of which a stage has as many as its layers make. source: validate_args
void import_chunks(Import& import, const ShellLine& line, const LaunchFlags& flags) {
    constexpr const char* flag = "--num-layers-per-virtual-pipeline-stage";
    const auto chunk = count_of(import, line, flags, flag);
    if (!chunk) return;
    const auto layers = count_of(import, line, flags, "--num-layers");
    const std::uint64_t stages = count_of(import, line, flags, "--pipeline-model-parallel-size").value_or(1);
    if (layers && *layers % stages == 0 && *layers / stages % *chunk == 0)
        state(import, "/training/virtual_pipeline", std::to_string(*layers / stages / *chunk), line.number,
              flag);
    else
        note(import, layers ? Finding::rejected : Finding::missing, flag, line.number,
             layers ? fmt::format("{} layers do not spread over {} stages in chunks of {}: Megatron refuses",
                                  *layers, stages, *chunk)
                    : "how many chunks a stage has follows from --num-layers, which doesn't stand here",
             "tell it with --set /training/virtual_pipeline=…");
}

void import_recompute(Import& import, const ShellLine& line, const LaunchFlags& flags) {
    if (flags.is_on("--recompute-activations"))
        state_word(import, "/training/recompute", "selective", line.number, "--recompute-activations");
    import_word(import, line, flags, {"--recompute-granularity", "/training/recompute"}, granularities);
    std::vector<std::string> own;
    for (const std::string& word : flags.values("--recompute-modules")) {
        if (const auto known = own_word(modules, word))
            own.push_back(fmt::format("\"{}\"", *known));
        else
            note(import, Finding::missing, "--recompute-modules", line.number,
                 fmt::format("\"{}\" is not planned here", printable(word.substr(0, 60))));
    }
    if (!own.empty())
        state(import, "/training/recompute_modules", fmt::format("[{}]", fmt::join(own, ", ")), line.number,
              "--recompute-modules");
}

void import_offload(Import& import, const ShellLine& line, const LaunchFlags& flags) {
    if (!flags.is_on("--optimizer-cpu-offload")) return;
    state_word(import, "/training/offload_optimizer", "cpu", line.number, "--optimizer-cpu-offload");
    const auto fraction = flags.value({"--optimizer-offload-fraction"});
    if (!fraction) return;
    double share = 0;
    const char* end = fraction->data() + fraction->size();
    const auto parsed = std::from_chars(fraction->data(), end, share);
    if (parsed.ec == std::errc{} && parsed.ptr == end && share >= 0 && share <= 1)
        state(import, "/training/offload_fraction", fmt::format("{}", share), line.number,
              "--optimizer-offload-fraction");
    else
        note(import, Finding::rejected, "--optimizer-offload-fraction", line.number,
             fmt::format("\"{}\" is no share from 0 to 1", printable(fraction->substr(0, 60))));
}

/// What stands in the object /training/megatron.
void import_own_object(Import& import, const ShellLine& line, const LaunchFlags& flags) {
    import_counts(import, line, flags, own_counts);
    for (const Key& key : own_words)
        if (const auto word = flags.value({key.flag}))
            state_word(import, key.pointer, *word, line.number, key.flag);
    for (const Key& key : own_on)
        if (flags.is_on(key.flag)) state(import, key.pointer, "true", line.number, key.flag);
    for (const Key& key : own_off)
        if (flags.is_on(key.flag)) state(import, key.pointer, "false", line.number, key.flag);
}

void import_engine(Import& import, const ShellLine& line, const LaunchFlags& flags) {
    const bool fsdp = flags.is_on("--use-megatron-fsdp") || flags.is_on("--use-custom-fsdp");
    state_word(import, "/training/engine", fsdp ? "megatron_fsdp" : "megatron", line.number,
               "Megatron-LM's script");
    const auto strategy = flags.value({"--data-parallel-sharding-strategy"});
    if (fsdp && strategy)
        state_word(import, "/training/megatron/data_parallel_sharding_strategy", *strategy, line.number,
                   "--data-parallel-sharding-strategy");
    if (flags.is_on("--use-distributed-optimizer") && !fsdp)
        state(import, "/training/zero_stage", "1", line.number, "--use-distributed-optimizer");
    import_own_object(import, line, flags);
}

}  // namespace

bool is_megatron(const ShellLine& line) {
    const LaunchFlags flags(line.words, 0);
    if (flags.has("--tensor-model-parallel-size") || flags.has("--pipeline-model-parallel-size")) return true;
    return std::any_of(line.words.begin(), line.words.end(), [](const std::string& word) {
        const std::string name = word.substr(word.rfind('/') == word.npos ? 0 : word.rfind('/') + 1);
        return name.starts_with("pretrain_") && name.ends_with(".py");
    });
}

std::optional<std::uint64_t> count_of(Import& import, const ShellLine& line, const LaunchFlags& flags,
                                      const char* name) {
    const auto text = flags.value({name});
    if (!text) return std::nullopt;
    std::uint64_t value = 0;
    const auto parsed = std::from_chars(text->data(), text->data() + text->size(), value);
    if (parsed.ec == std::errc{} && parsed.ptr == text->data() + text->size() && value > 0 && value <= most)
        return value;
    // Some are asked for by several that follow from them: said once.
    const auto said = [&](const ImportFinding& f) { return f.key == name && f.line == line.number; };
    if (std::none_of(import.findings.begin(), import.findings.end(), said))
        note(import, Finding::missing, name, line.number,
             fmt::format("\"{}\" is no number known here", printable(text->substr(0, 60))));
    return std::nullopt;
}

void import_megatron_flags(Import& import, const ShellLine& line, const LaunchFlags& flags,
                           bool has_precision) {
    // Megatron-DeepSpeed takes the same arguments, but its engine is DeepSpeed.
    if (!flags.has("--deepspeed") && !flags.has("--deepspeed_config")) import_engine(import, line, flags);
    import_counts(import, line, flags, counts);
    import_chunks(import, line, flags);
    if (flags.is_on("--sequence-parallel"))
        state(import, "/training/sequence_parallel", "true", line.number, "--sequence-parallel");
    if (const auto batch = count_of(import, line, flags, "--global-batch-size")) {
        import.scenario.train_batch_size = *batch;
        import.scenario.train_batch_size_origin = where(line.number, "--global-batch-size");
        figure(import, "global_batch", static_cast<double>(*batch), "sequences", "--global-batch-size");
    }
    if (!has_precision) {
        state_word(import, "/training/compute_dtype", "fp32", line.number, "no --bf16 and no --fp16");
        note(import, Finding::resolved, "--bf16", line.number,
             "neither --bf16 nor --fp16: Megatron-LM computes in fp32");
    }
    import_word(import, line, flags, {"--optimizer", "/training/optimizer"}, optimizers);
    import_recompute(import, line, flags);
    import_offload(import, line, flags);
    if (flags.is_on("--use-flash-attn"))
        state_word(import, "/training/attention", "flash", line.number, "--use-flash-attn");
    import_word(import, line, flags, {"--attention-backend", "/training/attention"}, backends);
    import_megatron_model(import, line, flags);
}

}  // namespace zeroplan
