#pragma once
#include <map>
#include <string>
#include <vector>

#include "zeroplan/io.hpp"

namespace CLI {
class App;
}

namespace zeroplan::command {

/// What the user typed of what is not as it should be.
struct WhatIfFlags {
    std::vector<std::string> stragglers, slow_links;
    std::map<std::string, std::string> values;  ///< flag → its text
};

/// Adds the flags to `app`; `flags` must outlive the parsing.
void add_what_if_flags(CLI::App& app, WhatIfFlags& flags);

/// `what_if` of the scenario as the flags set it.
std::vector<Setting> what_if_settings(const WhatIfFlags& flags);

}  // namespace zeroplan::command
