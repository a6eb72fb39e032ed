#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <algorithm>

#include "field_texts.hpp"
#include "zeroplan/fabric_sites.hpp"
#include "zeroplan/gui/request.hpp"
#include "zeroplan/gui/text.hpp"
#include "zeroplan/what_if_io.hpp"

namespace zeroplan::gui {

namespace {

constexpr const char* failures = "/what_if/failures";

// A long run without failures is one that nothing is asked of: the last text that is taken away takes all of
// it away.
bool asks_nothing_of_failures(const ScenarioRequest& request) {
    const QJsonObject merged =
        QJsonDocument::fromJson(QByteArray::fromStdString(merged_scenario_json(request))).object();
    const QJsonObject asked = merged["what_if"].toObject()["failures"].toObject();
    return std::all_of(asked.begin(), asked.end(), [](const auto& value) { return value.isNull(); });
}

// The JSON text at a pointer of two or three keys into {"what_if": …}; "" where there is nothing.
std::string what_if_at(const WhatIf& what_if, const std::string& pointer) {
    QJsonValue value = QJsonDocument::fromJson(QByteArray::fromStdString(what_if_json(what_if))).object();
    for (const QString& key : text(pointer).split('/').mid(2)) value = value.toObject().value(key);
    if (value.isUndefined()) return {};
    const QByteArray list = QJsonDocument(QJsonArray{value}).toJson(QJsonDocument::Compact);
    return list.mid(1, list.size() - 2).toStdString();
}

}  // namespace

Setting typed(const Field& field, const QString& value) {
    const std::string words = value.trimmed().toStdString(), origin = field.name().toStdString();
    try {
        return field.setting(words, origin);
    } catch (const Error&) {
        return word_setting(field.pointer, words, origin);
    }
}

ScenarioRequest taken_away(ScenarioRequest request, const std::string& pointer) {
    std::erase_if(request.settings, [&](const Setting& s) {
        return s.pointer == pointer || s.pointer.starts_with(pointer + '/');
    });
    if (is_stated(request, pointer)) request.settings.push_back({pointer, "null", "default"});
    if (pointer.starts_with(std::string(failures) + '/') && asks_nothing_of_failures(request))
        return taken_away(std::move(request), failures);
    return request;
}

QString shown_text(const Field& field, const ScenarioRequest& request, const WhatIf* what_if) {
    if (const auto setting = setting_at(request, field.pointer)) return field.flag_texts(*setting).join(", ");
    if (what_if == nullptr) return {};
    if (field.pointer == "/what_if/fabric" && what_if->leaf_switches) {  // the same in short
        WhatIf whole;
        whole.fabric = fabric_of(*what_if);
        return shown_text(field, {}, &whole);
    }
    const std::string json = what_if_at(*what_if, field.pointer);
    return json.empty() || json == "0" ? QString() : field.flag_texts(json).join(", ");
}

void check_texts(const ScenarioRequest& request) {
    for (const Field& field : fields()) {
        if (field.kind != Field::Kind::text) continue;
        const auto setting = setting_at(request, field.pointer);
        if (!setting || !setting->starts_with('"')) continue;
        try {
            (void)field.setting(plain_value(*setting).toStdString(), field.flag);
        } catch (const Error& error) {
            throw Error(error.code(), error.message(), error.hint(), {{}, field.pointer});
        }
    }
}

}  // namespace zeroplan::gui
