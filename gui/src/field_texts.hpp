#pragma once
#include "zeroplan/gui/fields.hpp"

namespace zeroplan::gui {

/// The setting of a text. What its flag can't read stays as it was typed; check_texts() tells what is wrong.
Setting typed(const Field& field, const QString& value);

/// The request without the key, whoever states it.
ScenarioRequest taken_away(ScenarioRequest request, const std::string& pointer);

}  // namespace zeroplan::gui
