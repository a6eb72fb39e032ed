#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "zeroplan/io.hpp"
#include "zeroplan/plan.hpp"
#include "zeroplan/scenario.hpp"

namespace CLI {
class App;
}

namespace zeroplan::command {

/// What the user typed to describe a scenario; every program takes the same flags.
struct ScenarioFlags {
    std::string scenario;                       ///< --scenario, "" = none
    std::map<std::string, std::string> values;  ///< flag ("--tp") → its text
    std::vector<std::string> set;               ///< --set, in order
    std::string save_scenario;                  ///< --save-scenario, "" = don't
    std::vector<Setting> more;                  ///< what flags of one program alone set; they come last
};

/// Adds the flags to `app`; `flags` must outlive the parsing.
void add_scenario_flags(CLI::App& app, ScenarioFlags& flags);

/// The file, then the flags in the order of the help text, then --set in the order typed. Beneath them lies
/// what --deepspeed and --accelerate name. Throws Error for a file that has no sensible reading, for null
/// as a flag's value (--set takes it: the default, whatever a file says), and for flags, or for these two
/// files, that say different things of one key.
ScenarioRequest to_request(const ScenarioFlags& flags);

/// Throws Error for what resolve_scenario() refuses.
Scenario resolve(const ScenarioFlags& flags);

/// A step of deliver(): writes to --save-scenario, if asked for, what was resolved, its what-if included. For
/// when the work is done: a command that is refused leaves no file. Throws at once for a what-if that has no
/// sensible reading.
std::function<void()> save_step(const ScenarioFlags& flags, const Scenario& scenario);

/// What there is to say of the files that --deepspeed and --accelerate name, the model known.
std::vector<Warning> import_warnings(const ScenarioFlags& flags, const Scenario& scenario);

/// The plan of resolve(flags); what the engine refuses is placed at the flag or key that asked for it.
Plan plan(const ScenarioFlags& flags);
/// The same with remedies where it doesn't fit, for a report: finding them is planning many times over.
Plan plan_with_remedies(const ScenarioFlags& flags);

}  // namespace zeroplan::command
