#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zeroplan/plan.hpp"
#include "zeroplan/report.hpp"
#include "zeroplan/scenario.hpp"

namespace zeroplan {

/// One override: a JSON pointer into the scenario and the value to put there.
struct Setting {
    std::string pointer;     ///< "/training/zero_stage"
    std::string json_value;  ///< JSON text
    std::string origin;      ///< what the user typed, for errors: "--zero", "--set"
    friend bool operator==(const Setting&, const Setting&) = default;
};

/// What a file of another program (DeepSpeed, accelerate, a job script) says about a scenario. It lies
/// beneath the scenario file: a key that stands there, or that a flag sets, is left as it is.
struct ImportedScenario {
    std::string file;
    std::vector<Setting> settings;  ///< origin: where in that file, "line 7: zero_optimization.stage"
    /// DeepSpeed's train_batch_size, which completes or contradicts micro_batch_size,
    /// gradient_accumulation_steps and the number of data-parallel ranks.
    std::optional<std::uint64_t> train_batch_size;
    std::string train_batch_size_origin;
    std::string flag;  ///< that gives the file to the command line: "--deepspeed"; "" = none
    friend bool operator==(const ImportedScenario&, const ImportedScenario&) = default;
};

/// A scenario as asked for: a file or text, then settings in order (they override it), then what other
/// programs' files say beneath both.
struct ScenarioRequest {
    std::string file;  ///< "" = none
    std::string text;  ///< scenario JSON given directly, used when `file` is empty; "" = {}
    std::vector<Setting> settings;
    std::vector<ImportedScenario> imported;  ///< of several that state a key the first wins
};

/// The override that `text` means at `pointer`: JSON where it reads as JSON, else a string.
Setting text_setting(std::string pointer, std::string_view text, std::string origin);
/// Always a string: words and names.
Setting word_setting(std::string pointer, std::string_view word, std::string origin);
/// Of "/json/pointer=value"; Error{invalid_input} without a leading slash or without "=".
Setting parse_setting(std::string_view pointer_and_value, std::string origin);

/// Two settings of which the second takes back what the first says of a key.
struct Contradiction {
    Setting first, second;
    std::string pointer;       ///< of the key
    std::string first_value;   ///< JSON text
    std::string second_value;  ///< JSON text; "" = the second replaces all around the key and leaves it out
    friend bool operator==(const Contradiction&, const Contradiction&) = default;
};
/// The first one among settings in order, if there is one. A value may be said twice, and a key inside an
/// object be set that the object leaves open.
std::optional<Contradiction> find_contradiction(std::span<const Setting> settings);

/// Reads, merges, checks and fills in all defaults. Throws Error with file, pointer, both values and a way
/// out.
Scenario resolve_scenario(const ScenarioRequest& request);
/// The keys that decide a plan and that the request leaves to their defaults, each with its value:
/// "sequence_length 8,192 (the model's maximum)". `scenario` is what the request resolved to.
std::vector<std::string> defaults_taken(const ScenarioRequest& request, const Scenario& scenario);
/// Whether the file, a flag or an imported file says anything at `pointer`.
bool is_stated(const ScenarioRequest& request, std::string_view pointer);
/// The scenario as asked for, all sources merged, before it is checked and defaults are filled in.
std::string merged_scenario_json(const ScenarioRequest& request, int indent = 2);
/// The setting that `--model NAME|config.json|model.safetensors|DIR` stands for: a preset if one has that
/// name, else a file.
Setting model_setting(const std::string& name_or_path, const std::string& origin);
/// Likewise `--topology NAME|FILE`.
Setting topology_setting(const std::string& name_or_path, const std::string& origin);
/// `--calibration FILE[,FILE…]`.
Setting calibration_setting(const std::string& paths, const std::string& origin);

/// An error about a key of a resolved scenario (of make_plan, the simulator, the runner), placed where the
/// request gave that key: its file, or the flag.
Error blame(const Error& error, const ScenarioRequest& request);

/// The scenario in SCENARIO.md's format, every default filled in; reading it back gives an equal Scenario.
std::string scenario_json(const Scenario& scenario, int indent = 2);

std::string plan_json(const Plan& plan, int indent = 2);
std::string sim_json(const Plan& plan, const SimReport& report, int indent = 2);
std::string run_json(const Plan& plan, const RunReport& report, int indent = 2);

/// A built-in preset for lists and menus.
struct Preset {
    std::string name, summary;
};
std::vector<Preset> model_presets();
std::vector<Preset> topology_presets();
std::vector<Preset> gpu_presets();
std::vector<Preset> engine_presets();
/// {"schema", "kind": "list", "what": "models", "entries": [{"name", "summary"}]}
std::string presets_json(std::string_view what, const std::vector<Preset>& presets, int indent = 2);

/// Whole file as text; Error{not_found} or Error{io} with the path.
std::string read_text_file(const std::string& path);
/// Writes through a temporary file beside it, fsync, rename: the old file stays whole until the new one is.
void write_text_file(const std::string& path, std::string_view text);

}  // namespace zeroplan
