#include <cmath>

#include <nlohmann/json.hpp>

#include "zeroplan/import.hpp"

namespace zeroplan {
namespace {

using nlohmann::ordered_json;

ordered_json finding_json(const ImportFinding& finding) {
    ordered_json out{{"finding", to_string(finding.finding)}};
    if (!finding.key.empty()) out["key"] = finding.key;
    if (finding.line != 0) out["line"] = finding.line;
    out["message"] = finding.message;
    if (!finding.hint.empty()) out["hint"] = finding.hint;
    return out;
}

/// Counts and bytes are whole numbers and stay so.
ordered_json value_json(double value) {
    constexpr double largest_exact = 9007199254740992.0;  // 2^53
    if (std::trunc(value) == value && std::abs(value) <= largest_exact)
        return static_cast<std::int64_t>(value);
    return value;
}

ordered_json figures_json(const Import& import) {
    ordered_json out = ordered_json::object();
    for (const ImportFigure& figure : import.figures) {
        out[figure.name] = {{"value", value_json(figure.value)}, {"unit", figure.unit}};
        if (!figure.note.empty()) out[figure.name]["note"] = figure.note;
    }
    return out;
}

}  // namespace

std::string import_json(const Import& import, const std::string& scenario, int indent) {
    ordered_json out{{"schema", 1},
                     {"kind", "import"},
                     {"what", to_string(import.kind)},
                     {"file", import.file},
                     {"rejected", import.rejected()}};
    out["findings"] = ordered_json::array();
    for (const ImportFinding& finding : import.findings) out["findings"].push_back(finding_json(finding));
    out["figures"] = figures_json(import);
    if (!scenario.empty()) out["scenario"] = ordered_json::parse(scenario);
    if (!import.topology_json.empty()) out["topology"] = ordered_json::parse(import.topology_json);
    if (!import.calibration_json.empty()) out["calibration"] = ordered_json::parse(import.calibration_json);
    return out.dump(indent, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace zeroplan
