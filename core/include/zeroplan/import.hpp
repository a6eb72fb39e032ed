#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeroplan/io.hpp"

namespace zeroplan {

/// What a file of another program is, by its content.
enum class ImportKind : std::uint8_t {
    deepspeed_config,   ///< ds_config.json
    accelerate_config,  ///< accelerate's YAML
    launch_script,      ///< torchrun, accelerate launch, deepspeed or sbatch lines
    oom_message,        ///< PyTorch's "CUDA out of memory. Tried to allocate …"
    deepspeed_memory,   ///< DeepSpeed's "MA … GB Max_MA … GB CA … GB" lines
    topology_matrix,    ///< nvidia-smi topo -m
    nccl_topology,      ///< <system> of NCCL_TOPO_DUMP_FILE
    nccl_graph,         ///< <graphs> of NCCL_GRAPH_DUMP_FILE
    nccl_tests          ///< log of all_reduce_perf, all_gather_perf …
};
std::string_view to_string(ImportKind kind);

/// What becomes of a key, or what was noticed.
enum class Finding : std::uint8_t {
    rejected,    ///< the program the file is for refuses it
    missing,     ///< has to be told
    warning,     ///< works, but not as one may think
    ignored,     ///< has no effect
    deprecated,  ///< works for now; the message names what replaces it
    resolved     ///< a default or "auto" and what it becomes
};
std::string_view to_string(Finding finding);

struct ImportFinding {
    Finding finding = Finding::warning;
    std::string key;       ///< "zero_optimization.aio"; "" = the file as a whole
    std::size_t line = 0;  ///< 0 = none
    std::string message, hint;
    std::string asks_for;  ///< of what is missing: the key of the scenario that tells it; "" = none
    friend bool operator==(const ImportFinding&, const ImportFinding&) = default;
};

/// A number that was read or follows from what was.
struct ImportFigure {
    std::string name;  ///< "reserved_unallocated_bytes"
    double value = 0;
    std::string unit;  ///< "B", "s", "B/s", "elements", "ranks", "1"
    std::string note;  ///< where it comes from
    friend bool operator==(const ImportFigure&, const ImportFigure&) = default;
};

/// A file understood: findings and figures for people, and what other commands take.
struct Import {
    ImportKind kind = ImportKind::deepspeed_config;
    std::string file;
    std::vector<ImportFinding> findings;
    std::vector<ImportFigure> figures;
    ImportedScenario scenario;     ///< of configurations and job scripts
    std::string deepspeed_config;  ///< path that a job script gives DeepSpeed, as it stands there; "" = none
    std::string topology_json;     ///< in the format of topologies/*.json; "" = none
    std::string calibration_json;  ///< {"schema", "kind": "calibration", …}; "" = none

    bool rejected() const;
    /// The figure of that name, if there is one.
    std::optional<double> figure(std::string_view name) const;
    friend bool operator==(const Import&, const Import&) = default;
};

/// What the user knows and the file can't say.
struct ImportContext {
    std::string gpu;                           ///< name of a GPU of the catalogue; "" = unknown
    double nic_bytes_per_s = 0;                ///< line rate of one network adapter; 0 = unknown
    std::optional<std::uint64_t> ranks;        ///< data-parallel ranks
    std::optional<std::uint64_t> hidden_size;  ///< of the model
};

/// Recognises `text` by its content and reads it. Throws Error{invalid_input} in `file` with the line for
/// what is none of these, naming what it looks like, and for contents that have no sensible reading.
Import import_text(std::string_view text, const std::string& file, const ImportContext& context = {});
/// The reader of one kind, where it is known what the file has to be.
Import import_deepspeed(std::string_view text, const std::string& file, const ImportContext& context = {});
Import import_accelerate(std::string_view text, const std::string& file, const ImportContext& context = {});

/// The DeepSpeed configuration that a job script names, if there is such a file: a relative path is looked up
/// in the script's folder, then where we run.
std::optional<std::string> find_deepspeed_config(const Import& script);

/// Ranks that hold different data, by what the request says of GPUs and degrees; nothing if it says nothing
/// of GPUs. Needs no model.
std::optional<std::uint64_t> stated_data_parallel_ranks(const ScenarioRequest& request);

/// Figures of an out-of-memory message or of DeepSpeed's memory lines beside those of the plan of the same
/// job.
void set_against(Import& import, const Plan& plan);

std::string import_text_report(const Import& import, const TextStyle& style = {});
/// {"schema", "kind": "import", "what", "file", "rejected", "findings", "figures", "scenario", "topology",
/// "calibration"}; `scenario` is the merged scenario's JSON, "" = none.
std::string import_json(const Import& import, const std::string& scenario, int indent = 2);

}  // namespace zeroplan
