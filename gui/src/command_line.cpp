#include <algorithm>

#include "zeroplan/gui/fields.hpp"
#include "zeroplan/gui/request.hpp"
#include "zeroplan/gui/text.hpp"

namespace zeroplan::gui {

namespace {

QString shell_quoted(const QString& word) {
    static const QString safe = "-_./=:,+@%";
    const bool plain = !word.isEmpty() && std::all_of(word.begin(), word.end(), [](QChar c) {
        return (c.unicode() < 128 && c.isLetterOrNumber()) || safe.contains(c);
    });
    if (plain) return word;
    return '\'' + QString(word).replace('\'', "'\\''") + '\'';
}

// What the flag takes, as often as it is given; anything else needs --set.
QStringList as_flag_values(const Field& field, const std::string& json_value) {
    if (field.kind == Field::Kind::text) return field.flag_texts(json_value);
    if (field.kind != Field::Kind::model) return {plain_value(json_value)};
    const QString name = model_name_or_path(json_value);
    return name.isEmpty() ? QStringList() : QStringList{name};
}

bool asks_what_if(const ScenarioRequest& request) {
    return std::any_of(request.settings.begin(), request.settings.end(),
                       [](const Setting& s) { return s.pointer.starts_with("/what_if"); });
}

// null takes a default where something else is stated beneath; elsewhere the default needs no words.
bool says_nothing(const ScenarioRequest& request, const Setting& setting) {
    if (setting.json_value != "null") return false;
    ScenarioRequest beneath = request;
    std::erase_if(beneath.settings, [&](const Setting& s) { return s.pointer == setting.pointer; });
    try {
        return !is_stated(beneath, setting.pointer);
    } catch (const Error&) {  // the window says what is wrong
        return false;
    }
}

}  // namespace

QString command_line(const ScenarioRequest& request) {
    return command_line(request, asks_what_if(request) ? "sim" : "plan");
}

QString command_line(const ScenarioRequest& request, const WhatIf& resolved) {
    return command_line(request, resolved.empty() ? "plan" : "sim");
}

QString command_line(const ScenarioRequest& request, const QString& subcommand) {
    QStringList words{"zeroplan", subcommand};
    if (!request.file.empty()) words << "--scenario" << shell_quoted(text(request.file));
    for (const ImportedScenario& imported : request.imported)
        if (!imported.flag.empty()) words << text(imported.flag) << shell_quoted(text(imported.file));
    std::vector<Setting> others = request.settings;
    for (const Field& field : fields()) {  // in the form's order, however they came about
        const auto json_value = setting_at(request, field.pointer);
        const QStringList values = json_value ? as_flag_values(field, *json_value) : QStringList();
        if (values.isEmpty()) continue;
        for (const QString& value : values) words << text(field.flag) << shell_quoted(value);
        std::erase_if(others, [&](const Setting& s) { return s.pointer == field.pointer; });
    }
    for (const Setting& setting : others)
        if (!says_nothing(request, setting))
            words << "--set" << shell_quoted(text(setting.pointer + '=' + setting.json_value));
    return words.join(' ');
}

}  // namespace zeroplan::gui
