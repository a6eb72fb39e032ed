#pragma once
#include <QString>
#include <optional>

#include "zeroplan/io.hpp"

namespace zeroplan::gui {

// What the form edits is a ScenarioRequest: a file, perhaps, and at most one setting for every pointer. These
// are its edits; all return a new value, so that undo keeps the old one.

bool same(const ScenarioRequest& a, const ScenarioRequest& b);

/// Replaces the settings of the same pointer and of what lies below it.
ScenarioRequest with(ScenarioRequest request, Setting setting);
/// The key takes its default again: the setting goes, and if a file may still state the key, null overrides
/// it.
ScenarioRequest without(ScenarioRequest request, const std::string& pointer);
/// JSON text of the setting at `pointer`; nothing if there is none, or if it only takes a key away.
std::optional<std::string> setting_at(const ScenarioRequest& request, const std::string& pointer);

/// A JSON string for `word`, and what a JSON string or number says; others as they are written.
std::string quoted(const QString& word);
QString plain_value(const std::string& json_value);
/// What `{"preset": name}` or `{"file": path}` names; "" for a model with overrides or one written out.
QString model_name_or_path(const std::string& model_json);

/// What opening `path` means: a scenario file, or a model (config.json, safetensors, a folder of them) put
/// into `current`. A file that can be neither is taken as a scenario, whose reader says what is wrong.
ScenarioRequest opened(const ScenarioRequest& current, const QString& path);

/// The scenario a window without a file begins with: Llama-3-8B under ZeRO 3 on two DGX H100.
ScenarioRequest starting_request();

}  // namespace zeroplan::gui
