#include "zeroplan/gui/fields.hpp"

#include <algorithm>

#include "field_texts.hpp"
#include "what_if_fields.hpp"
#include "zeroplan/gui/request.hpp"
#include "zeroplan/gui/text.hpp"
#include "zeroplan/words.hpp"

namespace zeroplan::gui {

namespace {

QString number(std::uint64_t value) {
    return QString::number(value);
}

template <typename Enum>
std::vector<QString> all_words() {
    std::vector<QString> all;
    for (const Word<Enum>& word : words<Enum>()) all.push_back(text(word.text));
    return all;
}

// Those whose state this version can count.
std::vector<QString> countable_optimizers() {
    std::vector<QString> all;
    for (const Word<Optimizer>& word : words<Optimizer>()) {
        try {
            optimizer_state_tensors(word.value);
            all.push_back(text(word.text));
        } catch (const Error&) {
        }
    }
    return all;
}

std::vector<QString> names(const std::vector<Preset>& presets) {
    std::vector<QString> all;
    for (const Preset& preset : presets) all.push_back(text(preset.name));
    return all;
}

Field choice(std::string pointer, QString label, std::string flag, QString tooltip,
             std::vector<QString> choices, QString (*value)(const Scenario&)) {
    Field field{Field::Kind::choice, std::move(pointer), std::move(label),
                std::move(flag),     std::move(tooltip), {}};
    field.choices = std::move(choices);
    field.value = value;
    return field;
}

Field count(std::string pointer, QString label, std::string flag, QString tooltip, int most, bool slider,
            QString (*value)(const Scenario&)) {
    Field field{Field::Kind::count, std::move(pointer), std::move(label),
                std::move(flag),    std::move(tooltip), {}};
    field.most = most;
    field.slider = slider;
    field.value = value;
    return field;
}

Field model_field() {
    Field field =
        choice("/model", QObject::tr("&Model"), "--model",
               QObject::tr("A preset, or a config.json, safetensors file or folder"), names(model_presets()),
               [](const Scenario& s) { return model_name_or_path(s.model_json); });
    field.kind = Field::Kind::model;
    field.section = QObject::tr("Model");
    return field;
}

Field topology_field() {
    Field field =
        choice("/cluster/topology", QObject::tr("&Topology"), "--topology",
               QObject::tr("The machines: a preset, or a file of your own"), names(topology_presets()),
               [](const Scenario& s) { return text(s.cluster.topology); });
    field.kind = Field::Kind::topology;
    field.section = QObject::tr("Cluster");
    return field;
}

Field stage_field() {
    Field field =
        choice("/training/zero_stage", QObject::tr("&ZeRO stage"), "--zero",
               QObject::tr("What the ranks share instead of each holding a copy"), {"0", "1", "2", "3"},
               [](const Scenario& s) { return number(s.training.zero_stage); });
    field.choice_labels = {QObject::tr("0: nothing sharded"), QObject::tr("1: optimizer states"),
                           QObject::tr("2: + gradients"), QObject::tr("3: + parameters")};
    field.section = QObject::tr("Training");
    return field;
}

// Ranks that work on one copy of the data together. Of the engines in the menu these split a model.
Field degree(std::string pointer, QString label, std::string flag, QString tooltip,
             QString (*value)(const Scenario&)) {
    Field field =
        count(std::move(pointer), std::move(label), std::move(flag), std::move(tooltip), 1024, false, value);
    field.engines = {"megatron", "fsdp2"};
    return field;
}

std::vector<Field> plan_fields() {
    using S = const Scenario&;
    return {
        model_field(),
        topology_field(),
        count("/cluster/gpus_used", QObject::tr("&GPUs"), "--gpus",
              QObject::tr("All ranks: part of one node, or whole nodes"), 131072, true,
              [](S s) { return number(s.cluster.gpus_used); }),
        count("/cluster/nodes", QObject::tr("No&des"), "--nodes", QObject::tr("Whole nodes; sets the GPUs"),
              16384, true, [](S s) { return number(s.cluster.nodes); }),
        stage_field(),
        choice("/training/engine", QObject::tr("E&ngine"), "--engine",
               QObject::tr("Whose rules of sharding, buckets and temporaries apply"), names(engine_presets()),
               [](S s) { return text(to_string(s.training.engine)); }),
        degree("/training/tensor_parallel", QObject::tr("Tensor &parallel"), "--tp",
               QObject::tr("Ranks that split every layer; as many fewer hold different data"),
               [](S s) { return number(s.training.tensor_parallel); }),
        degree("/training/pipeline_parallel", QObject::tr("Pipe&line"), "--pp",
               QObject::tr("Stages that the layers are dealt to; as many fewer ranks hold different data"),
               [](S s) { return number(s.training.pipeline_parallel); }),
        count("/training/micro_batch_size", QObject::tr("Micro-&batch"), "--micro-batch",
              QObject::tr("Sequences a rank computes at a time"), 65536, true,
              [](S s) { return number(s.training.micro_batch_size); }),
        count("/training/gradient_accumulation_steps", QObject::tr("&Accumulation"), "--grad-accum",
              QObject::tr("Micro-batches a rank computes before an optimizer step"), 65536, false,
              [](S s) { return number(s.training.gradient_accumulation_steps); }),
        count("/training/sequence_length", QObject::tr("Se&quence"), "--seq",
              QObject::tr("Tokens of a sequence"), 16'777'216, false,
              [](S s) { return number(s.training.sequence_length); }),
        choice("/training/recompute", QObject::tr("&Recompute"), "--recompute",
               QObject::tr("Which activations are dropped and computed again for backward"),
               {"none", "selective", "full"}, [](S s) { return text(to_string(s.training.recompute)); }),
        choice("/training/attention", QObject::tr("Attent&ion"), "--attention",
               QObject::tr("Eager attention keeps the score matrix; the others don't"),
               all_words<AttentionKernel>(), [](S s) { return text(to_string(s.training.attention)); }),
        choice("/training/optimizer", QObject::tr("&Optimizer"), "--optimizer",
               QObject::tr("Adam keeps two states a parameter, momentum one, plain SGD none"),
               countable_optimizers(), [](S s) { return text(to_string(s.training.optimizer)); }),
        choice("/training/compute_dtype", QObject::tr("Dt&ype"), "--dtype",
               QObject::tr("Of the matrix products; 16-bit ones train with fp32 master weights"),
               {"fp32", "tf32", "fp16", "bf16"},
               [](S s) { return text(to_string(s.training.compute_dtype)); }),
    };
}

std::vector<Field> make_fields() {
    std::vector<Field> all = plan_fields();
    for (Field& field : what_if_fields()) all.push_back(std::move(field));
    return all;
}

// Two controls that state the same thing, and the one default that a model brings. What else follows from an
// edited key (data_parallel, dtypes, a topology's figures) the scenario's reader lets follow.
ScenarioRequest follow(ScenarioRequest request, const Scenario* resolved, const std::string& pointer) {
    const auto forget = [&](const char* other) {
        std::erase_if(request.settings, [&](const Setting& s) { return s.pointer == other; });
    };
    if (pointer == "/cluster/gpus_used") forget("/cluster/nodes");
    if (pointer == "/cluster/nodes") forget("/cluster/gpus_used");
    if (pointer == "/what_if/fabric") return taken_away(std::move(request), "/what_if/leaf_switches");
    const bool longest =
        resolved != nullptr && resolved->training.sequence_length == resolved->model.max_sequence_length;
    if (pointer == "/model" && longest) return without(std::move(request), "/training/sequence_length");
    return request;
}

}  // namespace

Setting as_setting(const Field& field, const QString& value) {
    const std::string origin = field.name().toStdString();
    switch (field.kind) {
        case Field::Kind::model:
            return model_setting(value.toStdString(), origin);
        case Field::Kind::topology:
            return topology_setting(value.toStdString(), origin);
        case Field::Kind::choice:
            break;
        case Field::Kind::count:
            return {field.pointer, value.toStdString(), origin};
        case Field::Kind::text:
            return typed(field, value);
    }
    bool is_number = false;
    value.toULongLong(&is_number);
    return {field.pointer, is_number ? value.toStdString() : quoted(value), origin};
}

bool is_shown(const Field& field, const QString& engine, const QString& value) {
    const auto& engines = field.engines;
    return engines.empty() || value != "1" ||
           std::find(engines.begin(), engines.end(), engine) != engines.end();
}

const std::vector<Field>& fields() {
    static const std::vector<Field> all = make_fields();
    return all;
}

const Field& field(const std::string& pointer) {
    const auto found =
        std::find_if(fields().begin(), fields().end(), [&](const Field& f) { return f.pointer == pointer; });
    return found == fields().end() ? fields().front() : *found;
}

ScenarioRequest edited(const ScenarioRequest& request, const Scenario* resolved, const std::string& pointer,
                       const QString& value) {
    if (value.isEmpty() && field(pointer).kind == Field::Kind::text) return taken_away(request, pointer);
    if (value.isEmpty()) {
        ScenarioRequest again = request;
        std::erase_if(again.settings, [&](const Setting& s) { return s.pointer == pointer; });
        return again;
    }
    return follow(with(request, as_setting(field(pointer), value)), resolved, pointer);
}

}  // namespace zeroplan::gui
