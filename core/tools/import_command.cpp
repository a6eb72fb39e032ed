#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "subcommand.hpp"
#include "zeroplan/command/output.hpp"
#include "zeroplan/command/output_files.hpp"
#include "zeroplan/command/scenario_flags.hpp"
#include "zeroplan/import.hpp"

namespace zeroplan::tool {
namespace {

struct ImportFlags {
    std::string file, output_file;
    double nic_gbps = 0;
    command::ScenarioFlags scenario;
    command::OutputFlags output;
};

bool has_flag(const ImportFlags& flags, const char* name) {
    return flags.scenario.values.contains(name);
}

bool names_a_model(const ImportFlags& flags) {
    return has_flag(flags, "--model") || !flags.scenario.scenario.empty();
}

/// What the user's flags say, with `import`'s own settings beneath them.
ScenarioRequest request_of(const ImportFlags& flags, const Import& import) {
    ScenarioRequest request = command::to_request(flags.scenario);
    request.imported.insert(request.imported.begin(), import.scenario);
    return request;
}

bool is_configuration(const Import& import) {
    return !import.scenario.settings.empty();
}

/// The model's size and the number of ranks, where the flags or the file tell them: what "auto" and the batch
/// sizes follow from.
ImportContext with_scenario(ImportContext context, const ImportFlags& flags, const Import& import) {
    ScenarioRequest request = request_of(flags, import);
    context.ranks = stated_data_parallel_ranks(request);
    if (!context.ranks) request.imported.front().train_batch_size.reset();
    if (names_a_model(flags)) context.hidden_size = resolve_scenario(request).model.hidden_size;
    return context;
}

ImportContext context_of(const ImportFlags& flags) {
    if (!std::isfinite(flags.nic_gbps) || flags.nic_gbps < 0 || flags.nic_gbps > 1e5)
        throw Error(ErrorCode::invalid_input, fmt::format("{} is no line rate", flags.nic_gbps),
                    "400 stands for 400 Gb/s", {"command line", "--nic-gbps"});
    ImportContext context;
    context.nic_bytes_per_s = flags.nic_gbps * 1e9 / 8;
    if (const auto gpu = flags.scenario.values.find("--gpu"); gpu != flags.scenario.values.end())
        context.gpu = gpu->second;
    return context;
}

/// The file understood. A model that --model names takes the place of the one whose sizes stand in the file.
Import understood(const ImportFlags& flags, const std::string& text, const ImportContext& context) {
    Import import = import_text(text, flags.file, context);
    if (!has_flag(flags, "--model")) return import;
    std::erase_if(import.scenario.settings,
                  [](const Setting& setting) { return setting.pointer.starts_with("/model/"); });
    std::erase_if(import.findings,
                  [](const ImportFinding& finding) { return finding.asks_for.starts_with("/model"); });
    return import;
}

/// What a job script gives DeepSpeed, as if --deepspeed had named it.
void take_deepspeed_config(ImportFlags& flags, const Import& import) {
    if (has_flag(flags, "--deepspeed")) return;
    if (const auto path = find_deepspeed_config(import)) flags.scenario.values["--deepspeed"] = *path;
}

/// That it has been read, in place of asking for it.
void tell_deepspeed_config(const ImportFlags& flags, Import& import) {
    if (import.deepspeed_config.empty() || !has_flag(flags, "--deepspeed")) return;
    const std::string& path = flags.scenario.values.at("--deepspeed");
    for (ImportFinding& finding : import.findings)
        if (finding.finding == Finding::missing && finding.key == "--deepspeed") {
            finding.finding = Finding::resolved;
            finding.message = fmt::format("the DeepSpeed configuration is read from {}", path);
            finding.hint = fmt::format("zeroplan import {} tells what DeepSpeed makes of it", path);
        }
}

/// What the flags tell needs no asking for.
void drop_what_is_told(Import& import, const ImportFlags& flags) {
    const ScenarioRequest request = request_of(flags, import);
    std::erase_if(import.findings, [&](const ImportFinding& finding) {
        return !finding.asks_for.empty() && is_stated(request, finding.asks_for);
    });
}

/// The scenario that the file and the flags make together; without known ranks train_batch_size stays open.
std::string scenario_of(const ImportFlags& flags, const Import& import) {
    if (!is_configuration(import)) return {};
    ScenarioRequest request = request_of(flags, import);
    if (!is_stated(request, "/cluster")) request.imported.front().train_batch_size.reset();
    return merged_scenario_json(request);
}

/// What --output writes, "" without that flag.
std::string output_text(const ImportFlags& flags, const Import& import, const std::string& scenario) {
    if (flags.output_file.empty()) return {};
    const std::string& text = !import.topology_json.empty()      ? import.topology_json
                              : !import.calibration_json.empty() ? import.calibration_json
                                                                 : scenario;
    if (text.empty())
        throw Error(ErrorCode::invalid_input,
                    import.kind == ImportKind::topology_matrix || import.kind == ImportKind::nccl_topology
                        ? "a topology needs to know its GPU, which doesn't stand in this file"
                        : fmt::format("an import of {} makes no file", to_string(import.kind)),
                    import.kind == ImportKind::topology_matrix || import.kind == ImportKind::nccl_topology
                        ? "name it with --gpu (zeroplan list gpus)"
                        : "leave out --output",
                    {"command line", "--output"});
    return text + "\n";
}

void report(const ImportFlags& flags, const Import& import, const std::string& scenario) {
    if (flags.output.json)
        command::print(import_json(import, scenario));
    else if (!flags.output.quiet)
        command::print(import_text_report(import, command::terminal_style()));
}

int run_import(ImportFlags flags) {
    command::check_writable({flags.output_file});
    const std::string text = read_text_file(flags.file);
    ImportContext context = context_of(flags);
    Import import = understood(flags, text, context);
    take_deepspeed_config(flags, import);
    if (is_configuration(import)) import = understood(flags, text, with_scenario(context, flags, import));
    drop_what_is_told(import, flags);
    tell_deepspeed_config(flags, import);
    const bool is_memory =
        import.kind == ImportKind::oom_message || import.kind == ImportKind::deepspeed_memory;
    std::function<void()> save = [] {};
    if (is_memory && names_a_model(flags)) {
        const Plan plan = command::plan(flags.scenario);
        set_against(import, plan);
        save = command::save_step(flags.scenario, plan.scenario);
    }
    const std::string scenario = scenario_of(flags, import);
    const std::string output = output_text(flags, import, scenario);
    command::deliver({save, command::file_step(flags.output_file, [&] { return output; }),
                      [&] { report(flags, import, scenario); }});
    return import.rejected() ? 1 : 0;
}

}  // namespace

void add_import(CLI::App& app, Action& chosen) {
    const auto flags = std::make_shared<ImportFlags>();
    CLI::App* import = app.add_subcommand("import", "Explains other programs' files and makes use of them");
    import->add_option("FILE", flags->file, "Recognised by its content")->type_name("FILE")->required();
    import
        ->add_option("--output", flags->output_file,
                     "Write the topology, the calibration or the scenario that the file makes")
        ->type_name("FILE")
        ->group("Output");
    import->add_option("--nic-gbps", flags->nic_gbps, "Line rate of one network adapter, Gb/s")
        ->type_name("N");
    command::add_output_flags(*import, flags->output);
    command::add_scenario_flags(*import, flags->scenario);
    import->footer(
        "Known are DeepSpeed JSON, accelerate YAML, torchrun and sbatch scripts, out-of-memory messages, "
        "DeepSpeed's\n"
        "memory lines, nvidia-smi topo -m, NCCL topology and graph XML and nccl-tests logs.\n"
        "Exit status: 0 done, 1 the program that the file is for rejects it, 2 the input is wrong.\n\n"
        "Example: what does DeepSpeed make of this file on 16 GPUs with this model?\n"
        "  zeroplan import ds_config.json --model llama-3-8b --gpus 16\n"
        "Example: a topology of this machine\n"
        "  nvidia-smi topo -m > topo.txt && zeroplan import topo.txt --gpu h100-sxm-80gb --output mine.json");
    import->callback([flags, &chosen] { chosen = [flags] { return run_import(*flags);
};
}  // namespace zeroplan::tool
);
}

}  // namespace zeroplan::tool
