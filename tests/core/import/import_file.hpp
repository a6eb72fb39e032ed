#pragma once
#include <algorithm>
#include <string>

#include "zeroplan/import.hpp"

namespace zeroplan {

inline std::string import_path(const std::string& name) {
    return ZEROPLAN_TEST_DATA "/core/data/imports/" + name;
}

/// A file of tests/core/data/imports, understood.
inline Import import_file(const std::string& name, const ImportContext& context = {}) {
    return import_text(read_text_file(import_path(name)), name, context);
}

/// JSON text of what `import` states at `pointer`; "" = nothing.
inline std::string stated(const Import& import, const std::string& pointer) {
    for (const Setting& setting : import.scenario.settings)
        if (setting.pointer == pointer) return setting.json_value;
    return {};
}

/// The first finding of that kind about `key`; one without a message if there is none.
inline ImportFinding finding(const Import& import, Finding kind, const std::string& key) {
    for (const ImportFinding& entry : import.findings)
        if (entry.finding == kind && entry.key == key) return entry;
    return {};
}

inline std::size_t count(const Import& import, Finding kind) {
    return static_cast<std::size_t>(
        std::count_if(import.findings.begin(), import.findings.end(),
                      [&](const ImportFinding& entry) { return entry.finding == kind; }));
}

}  // namespace zeroplan
