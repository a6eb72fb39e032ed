#include "zeroplan/import.hpp"

#include <algorithm>
#include <filesystem>

namespace zeroplan {

std::string_view to_string(ImportKind kind) {
    switch (kind) {
        case ImportKind::deepspeed_config:
            return "deepspeed_config";
        case ImportKind::accelerate_config:
            return "accelerate_config";
        case ImportKind::launch_script:
            return "launch_script";
        case ImportKind::oom_message:
            return "oom_message";
        case ImportKind::deepspeed_memory:
            return "deepspeed_memory";
        case ImportKind::topology_matrix:
            return "topology_matrix";
        case ImportKind::nccl_topology:
            return "nccl_topology";
        case ImportKind::nccl_graph:
            return "nccl_graph";
        case ImportKind::nccl_tests:
            return "nccl_tests";
    }
    return {};
}

std::string_view to_string(Finding finding) {
    switch (finding) {
        case Finding::rejected:
            return "rejected";
        case Finding::missing:
            return "missing";
        case Finding::warning:
            return "warning";
        case Finding::ignored:
            return "ignored";
        case Finding::deprecated:
            return "deprecated";
        case Finding::resolved:
            return "resolved";
    }
    return {};
}

bool Import::rejected() const {
    return std::any_of(findings.begin(), findings.end(),
                       [](const ImportFinding& finding) { return finding.finding == Finding::rejected; });
}

std::optional<double> Import::figure(std::string_view name) const {
    const auto found = std::find_if(figures.begin(), figures.end(),
                                    [&](const ImportFigure& figure) { return figure.name == name; });
    if (found == figures.end()) return std::nullopt;
    return found->value;
}

std::optional<std::string> find_deepspeed_config(const Import& script) {
    namespace fs = std::filesystem;
    const fs::path named = script.deepspeed_config;
    if (named.empty()) return std::nullopt;
    std::error_code ignored;
    for (const fs::path& path : {fs::path(script.file).parent_path() / named, named})
        if (fs::is_regular_file(path, ignored)) return path.string();
    return std::nullopt;
}

}  // namespace zeroplan
