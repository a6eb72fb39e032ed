#include "zeroplan/gui/request.hpp"

#include <QFile>
#include <QFileInfo>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <algorithm>

#include "zeroplan/gui/text.hpp"

namespace zeroplan::gui {

namespace {

bool below(const std::string& pointer, const std::string& parent) {
    return pointer == parent || pointer.starts_with(parent + '/');
}

bool is_scenario(const QString& path) {
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly)) return true;
    // safetensors begin with the length of their header, no JSON text does.
    const QJsonDocument document = QJsonDocument::fromJson(file.readAll());
    if (!document.isObject()) return true;
    const QJsonObject object = document.object();
    const auto has = [&](const char* key) { return object.contains(QLatin1String(key)); };
    return has("model") || has("training") || has("cluster") || has("schema") || object.isEmpty();
}

bool is_model(const QString& path) {
    return QFileInfo(path).isDir() || path.endsWith(".safetensors") || !is_scenario(path);
}

}  // namespace

bool same(const ScenarioRequest& a, const ScenarioRequest& b) {
    const auto equal = [](const Setting& x, const Setting& y) {
        return x.pointer == y.pointer && x.json_value == y.json_value;
    };
    return a.file == b.file && a.text == b.text && a.imported == b.imported &&
           std::equal(a.settings.begin(), a.settings.end(), b.settings.begin(), b.settings.end(), equal);
}

ScenarioRequest with(ScenarioRequest request, Setting setting) {
    std::erase_if(request.settings, [&](const Setting& s) { return below(s.pointer, setting.pointer); });
    request.settings.push_back(std::move(setting));
    return request;
}

ScenarioRequest without(ScenarioRequest request, const std::string& pointer) {
    const bool stated_elsewhere =
        !request.file.empty() || !request.text.empty() || !request.imported.empty() ||
        std::any_of(request.settings.begin(), request.settings.end(),
                    [&](const Setting& s) { return s.pointer != pointer && below(pointer, s.pointer); });
    if (stated_elsewhere) return with(std::move(request), {pointer, "null", "default"});
    std::erase_if(request.settings, [&](const Setting& s) { return below(s.pointer, pointer); });
    return request;
}

std::optional<std::string> setting_at(const ScenarioRequest& request, const std::string& pointer) {
    for (const Setting& setting : request.settings)
        if (setting.pointer == pointer && setting.json_value != "null") return setting.json_value;
    return std::nullopt;
}

std::string quoted(const QString& word) {
    const QByteArray list = QJsonDocument(QJsonArray{word}).toJson(QJsonDocument::Compact);
    return list.mid(1, list.size() - 2).toStdString();
}

QString plain_value(const std::string& json_value) {
    const QByteArray list = '[' + QByteArray::fromStdString(json_value) + ']';
    const QJsonValue value = QJsonDocument::fromJson(list).array().at(0);
    return value.isString() ? value.toString() : text(json_value);
}

QString model_name_or_path(const std::string& model_json) {
    const QJsonObject model = QJsonDocument::fromJson(QByteArray::fromStdString(model_json)).object();
    if (model.size() != 1) return {};
    for (const char* key : {"preset", "file"})
        if (const QJsonValue value = model.value(QLatin1String(key)); value.isString())
            return value.toString();
    return {};
}

ScenarioRequest opened(const ScenarioRequest& current, const QString& path) {
    const std::string file = path.toStdString();
    if (is_model(path)) return with(current, model_setting(file, "Model"));
    return {file, {}, {}};
}

ScenarioRequest starting_request() {
    ScenarioRequest request = with({}, model_setting("llama-3-8b", "Model"));
    request = with(std::move(request), topology_setting("dgx-h100", "Topology"));
    request = with(std::move(request), {"/cluster/gpus_used", "16", "GPUs"});
    return with(std::move(request), {"/training/zero_stage", "3", "ZeRO stage"});
}

}  // namespace zeroplan::gui
