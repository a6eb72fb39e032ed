#include <algorithm>
#include <array>

#include "import/batch_equation.hpp"
#include "import/deepspeed_config.hpp"
#include "import/deepspeed_keys.hpp"
#include "import/deepspeed_precision.hpp"
#include "import/deepspeed_zero.hpp"
#include "import/json_looks.hpp"
#include "json/object_reader.hpp"
#include "nearest.hpp"

namespace zeroplan {
namespace {

constexpr const char* train_key = "train_batch_size";
constexpr const char* micro_key = "train_micro_batch_size_per_gpu";
constexpr const char* steps_key = "gradient_accumulation_steps";

void note_writing(Import& import, const RelaxedJson& document) {
    constexpr const char* who =
        "DeepSpeed's own reader (hjson) takes it; Hugging Face's Trainer and accelerate read strict JSON and "
        "stop";
    if (document.first_comment)
        note(import, Finding::warning, "", *document.first_comment, fmt::format("a comment: {}", who));
    if (document.first_trailing_comma)
        note(import, Finding::warning, "", *document.first_trailing_comma,
             fmt::format("a comma before a closing bracket: {}", who));
}

/// DeepSpeed asks for the keys it knows and never sees the others.
void note_unknown_keys(const DeepSpeedSection& config) {
    const auto known = deepspeed_top_keys();
    for (const auto& item : config.value().items()) {
        if (std::find(known.begin(), known.end(), item.key()) != known.end()) continue;
        std::string hint = "remove it";
        if (find_zero_key(item.key()) != nullptr)
            hint = fmt::format("\"{}\" belongs into zero_optimization", item.key());
        else if (const auto near = nearest(item.key(), known))
            hint = fmt::format("did you mean \"{}\"?", *near);
        config.note(Finding::ignored, item.key(), "DeepSpeed reads no such key", hint);
    }
}

std::uint32_t import_zero_of(const DeepSpeedSection& config, const ImportContext& context) {
    constexpr const char* key = "zero_optimization";
    const nlohmann::json* zero = config.find(key);
    if (zero != nullptr && zero->is_boolean()) {
        const bool on = *zero == true;
        config.note(
            Finding::deprecated, key,
            fmt::format("{} is the format of 2020 and means stage {}", on ? "true" : "false", on ? 1 : 0),
            fmt::format(R"(write "zero_optimization": {{"stage": {}}})", on ? 1 : 0));
        config.state("/training/zero_stage", on ? "1" : "0", key);
        return on ? 1 : 0;
    }
    const auto section = config.section(key);
    if (!section) {
        config.state("/training/zero_stage", "0", key);
        config.note(Finding::resolved, key, "absent: ZeRO is off, stage 0");
        return 0;
    }
    const std::uint32_t stage = import_zero(*section, context);
    resolve_zero(*section, stage, context);
    return stage;
}

void note_batch(const DeepSpeedSection& config, const BatchSizes& stated, const ImportContext& context) {
    const char* key = stated.train ? train_key : micro_key;
    if (!context.ranks) {
        if (stated.train)
            config.ask("/cluster", key, batch_in_words(stated), "tell the number of ranks with --gpus");
        return;
    }
    const BatchSizes sizes =
        complete(stated, *context.ranks, {config.import().file, where(config.line(key), key)});
    config.note(Finding::resolved, key, batch_in_words(sizes, *context.ranks));
    figure(config.import(), train_key, static_cast<double>(*sizes.train), "sequences");
    figure(config.import(), micro_key, static_cast<double>(*sizes.micro_batch), "sequences");
    figure(config.import(), steps_key, static_cast<double>(*sizes.accumulation), "1");
}

void import_batch(const DeepSpeedSection& config, const ImportContext& context) {
    const BatchSizes stated{config.count(train_key, 1), config.count(micro_key, 1),
                            config.count(steps_key, 1)};
    if (stated.micro_batch)
        config.state("/training/micro_batch_size", std::to_string(*stated.micro_batch), micro_key);
    if (stated.accumulation)
        config.state("/training/gradient_accumulation_steps", std::to_string(*stated.accumulation),
                     steps_key);
    if (stated.train) {
        config.import().scenario.train_batch_size = stated.train;
        config.import().scenario.train_batch_size_origin = where(config.line(train_key), train_key);
    }
    for (const char* key : {train_key, micro_key, steps_key})
        if (config.is_auto(key) && (key != train_key || !config.has(micro_key)))
            config.ask(
                key == steps_key ? "/training/gradient_accumulation_steps" : "/training/micro_batch_size",
                key, "\"auto\": Hugging Face's Trainer puts its own argument here",
                "tell it with --micro-batch and --grad-accum");
    if (stated.train || stated.micro_batch)
        note_batch(config, stated, context);
    else if (!config.is_auto(train_key) && !config.is_auto(micro_key))
        config.ask("/training/micro_batch_size", micro_key,
                   fmt::format("DeepSpeed starts with \"{}\" or \"{}\" only", train_key, micro_key),
                   "tell the micro-batch with --micro-batch");
}

struct OptimizerWord {
    std::string_view type;  ///< in lower case
    Optimizer optimizer;
};
/// source: DEEPSPEED_OPTIMIZERS and engine.py, _configure_basic_optimizer
constexpr std::array optimizers{
    OptimizerWord{"adam", Optimizer::adamw},  // adam_w_mode is on unless it is turned off
    OptimizerWord{"adamw", Optimizer::adamw}, OptimizerWord{"lamb", Optimizer::lamb},
    OptimizerWord{"lion", Optimizer::lion},   OptimizerWord{"muon", Optimizer::muon},
    OptimizerWord{"sgd", Optimizer::sgd},     OptimizerWord{"adagrad", Optimizer::adagrad}};

bool turns_off_adamw(const DeepSpeedSection& optimizer) {
    const auto params = optimizer.section("params");
    return params && params->flag("adam_w_mode") == false;
}

void import_optimizer(const DeepSpeedSection& config) {
    const auto section = config.section("optimizer");
    const auto type = section ? section->word("type") : std::nullopt;
    if (!type) return;
    std::string lower = *type;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    for (const OptimizerWord& known : optimizers) {
        if (known.type != lower) continue;
        const bool adam = lower == "adam" && turns_off_adamw(*section);
        section->state_word("/training/optimizer", to_string(adam ? Optimizer::adam : known.optimizer),
                            "type");
        return;
    }
    section->ask("/training/optimizer", "type", fmt::format("the states of \"{}\" are not known here", *type),
                 "name the optimizer with the most similar states with --optimizer");
}

void import_aio(const DeepSpeedSection& config) {
    constexpr std::array<std::string_view, 6> known{"block_size",    "queue_depth",    "intra_op_parallelism",
                                                    "single_submit", "overlap_events", "use_gds"};
    const auto aio = config.section("aio");
    if (!aio) return;
    if (const auto threads = aio->count("intra_op_parallelism", 1))
        aio->state("/training/deepspeed/aio/intra_op_parallelism", std::to_string(*threads),
                   "intra_op_parallelism");
    for (const auto& item : aio->value().items())
        if (std::find(known.begin(), known.end(), item.key()) == known.end())
            aio->note(Finding::ignored, item.key(), "DeepSpeed reads no such key",
                      item.key() == "thread_count" ? "renamed \"intra_op_parallelism\"" : "remove it");
}

/// Sections that change memory or time and that the scenario has no word for.
void note_not_imported(const DeepSpeedSection& config) {
    struct Section {
        const char *key, *message, *hint;
    };
    constexpr std::array sections{
        Section{"activation_checkpointing",
                "works only where the model calls deepspeed.checkpointing.checkpoint(): not taken over",
                "say what is recomputed with --recompute"},
        Section{"pipeline", "the pipeline's stages are stated in the program, not here: not taken over",
                "state them with --pp"},
        Section{"tensor_parallel", "not taken over", "state it with --tp"},
        Section{"sequence_parallel_size", "not taken over", "state it with --cp"},
        Section{"elasticity", "takes over the batch sizes when it is enabled: not modelled",
                "state the sizes it chooses with --micro-batch and --grad-accum"},
        Section{"compression_training", "not modelled", ""},
        Section{"hybrid_engine", "its inference containers are not modelled", ""},
        Section{"torch_autocast", "not modelled: parameters stay in fp32 under it", ""},
        Section{"amp", "Apex AMP works without ZeRO only: not modelled", "use fp16 or bf16"}};
    for (const Section& section : sections)
        if (config.has(section.key))
            config.note(Finding::warning, section.key, section.message, section.hint);
}

void sort_by_line(Import& import) {
    std::stable_sort(import.findings.begin(), import.findings.end(),
                     [](const ImportFinding& a, const ImportFinding& b) { return a.line < b.line; });
}

}  // namespace

void import_deepspeed_into(Import& import, const RelaxedJson& document, const ImportContext& context) {
    if (!document.value.is_object())
        fail_at(import, 1, "",
                fmt::format("a DeepSpeed configuration is one object {{…}}, but this is {}",
                            shown(document.value)),
                R"(as in {"zero_optimization": {"stage": 3}})");
    note_writing(import, document);
    const DeepSpeedSection config(import, document, "");
    note_unknown_keys(config);
    state_word(import, "/training/engine", "deepspeed", 0, "");
    import_precision(config);
    import_zero_of(config, context);
    import_batch(config, context);
    import_optimizer(config);
    import_aio(config);
    note_not_imported(config);
    sort_by_line(import);
}

Import import_deepspeed(std::string_view text, const std::string& file, const ImportContext& context) {
    Import import;
    import.kind = ImportKind::deepspeed_config;
    import.file = import.scenario.file = file;
    const RelaxedJson document = parse_relaxed_json(text, file);
    if (const JsonLook* look = json_look(document.value); look != nullptr && !is_deepspeed(document.value))
        fail_at(import, document.line_of(fmt::format("/{}", look->key)), look->key,
                fmt::format("this is {}, not a DeepSpeed configuration", look->what),
                std::string(look->hint));
    import_deepspeed_into(import, document, context);
    return import;
}

}  // namespace zeroplan
