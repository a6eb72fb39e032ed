#pragma once
#include <QString>
#include <span>
#include <string>
#include <vector>

#include "zeroplan/io.hpp"

namespace zeroplan::gui {

/// One control of the form: the key of the scenario that it sets and the flag that sets it on a command line.
struct Field {
    enum class Kind : std::uint8_t { model, topology, choice, count };
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
    /// What a resolved scenario holds for it, as plain text.
    QString (*value)(const Scenario&) = nullptr;

    /// The label without its shortcut mark.
    QString name() const { return QString(label).remove('&'); }
};

/// Whether the form shows it: the engine knows it, or the scenario states something other than 1.
bool is_shown(const Field& field, const QString& engine, const QString& value);

/// All controls in tab order.
const std::vector<Field>& fields();
const Field& field(const std::string& pointer);

/// The request after `value` was put into the control of `pointer`. GPUs and nodes replace each other, and a
/// sequence as long as the model's maximum follows to another model's; `resolved`, if there is one, tells.
/// An empty value takes what the file says again.
/// Throws Error{not_found} for a model or topology that is neither preset nor file.
ScenarioRequest edited(const ScenarioRequest& request, const Scenario* resolved, const std::string& pointer,
                       const QString& value);

/// "zeroplan plan --model llama-3-8b --zero 3": the command that plans the same, quoted for a POSIX shell.
QString command_line(const ScenarioRequest& request, const QString& subcommand = "plan");

}  // namespace zeroplan::gui
