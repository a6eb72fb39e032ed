#pragma once
#include <QStringList>
#include <span>
#include <string>
#include <vector>

#include "zeroplan/io.hpp"
#include "zeroplan/what_if.hpp"

namespace zeroplan::gui {

/// One control of the form: the key of the scenario that it sets and the flag that sets it on a command line.
struct Field {
    enum class Kind : std::uint8_t { model, topology, choice, count, text };
    Kind kind = Kind::count;
    std::string pointer;  ///< "/training/zero_stage"
    QString label;        ///< "&ZeRO stage"; & marks the shortcut
    std::string flag;     ///< "--zero"
    QString tooltip;
    QString section;                       ///< heading it stands under
    std::vector<QString> choices{};        ///< words of a choice
    std::vector<QString> choice_labels{};  ///< what the menu says, where the word alone says little
    int least = 1, most = 1;               ///< of a count
    bool slider = false;                   ///< of a count: a slider over powers of two as well
    std::vector<QString> engines{};        ///< the engines that know it; empty: all
    /// What a resolved scenario holds for it, as plain text; null of a text, which is a key of `what_if`.
    QString (*value)(const Scenario&) = nullptr;

    QString example{};        ///< of a text: stands there while it is empty
    bool takes_file = false;  ///< of a text: it names a file, which can be chosen
    /// Of a text: the setting that the flag makes of it, and what the flag takes, once each time that it is
    /// given, of the setting's JSON.
    Setting (*setting)(const std::string& text, const std::string& origin) = nullptr;
    QStringList (*flag_texts)(const std::string& json) = nullptr;

    /// The label without its shortcut mark.
    QString name() const { return QString(label).remove('&'); }
};

/// Whether the form shows it: the engine knows it, or the scenario states something other than 1.
bool is_shown(const Field& field, const QString& engine, const QString& value);

/// All controls in tab order.
const std::vector<Field>& fields();
const Field& field(const std::string& pointer);

/// What `value` in the control sets. Throws Error{not_found} for a model or topology that is neither preset
/// nor file; a text that its flag can't read is set as it is.
Setting as_setting(const Field& field, const QString& value);

/// The request after `value` was put into the control of `pointer`. GPUs and nodes replace each other, and a
/// sequence as long as the model's maximum follows to another model's; `resolved`, if there is one, tells.
/// An empty value takes what the file says again.
/// Throws Error{not_found} for a model or topology that is neither preset nor file.
ScenarioRequest edited(const ScenarioRequest& request, const Scenario* resolved, const std::string& pointer,
                       const QString& value);

/// What a control of texts shows: what the request sets, else what it resolved to, else nothing.
QString shown_text(const Field& field, const ScenarioRequest& request, const WhatIf* what_if);

/// Throws what the flag's reader says of a text that could not become a setting.
void check_texts(const ScenarioRequest& request);

/// "zeroplan plan --model llama-3-8b --zero 3": the command that plans the same, or simulates what a what-if
/// changes, quoted for a POSIX shell.
QString command_line(const ScenarioRequest& request);
QString command_line(const ScenarioRequest& request, const QString& subcommand);
/// The same where it is known what the request asks, its file's own what-if included.
QString command_line(const ScenarioRequest& request, const WhatIf& resolved);

}  // namespace zeroplan::gui
