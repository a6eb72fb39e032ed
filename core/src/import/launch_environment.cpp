#include "import/launch_environment.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "import/import_builder.hpp"
#include "import/text_lines.hpp"
#include "import/torch_allocator.hpp"
#include "printable.hpp"

namespace zeroplan {
namespace {

constexpr std::array<std::string_view, 2> allocator_names{"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"};

bool is_of_interest(std::string_view name) {
    return name.starts_with("NCCL_") ||
           std::find(allocator_names.begin(), allocator_names.end(), name) != allocator_names.end();
}

/// NAME of NAME=value, if it is one of interest.
std::string_view variable_of(std::string_view word) {
    const std::string_view name = word.substr(0, word.find('='));
    return name.size() < word.size() && is_of_interest(name) ? name : std::string_view{};
}

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

std::string shown(const EnvironmentVariable& variable) {
    return printable(variable.value.substr(0, 80));
}

/// Lists, exclusions and choices by collective are NCCL's own (src/graph/tuning.cc); one word is a choice
/// that the plan has, too.
void import_choice(Import& import, const char* pointer, const std::string& name,
                   const EnvironmentVariable& variable,
                   std::initializer_list<std::pair<std::string_view, std::string_view>> known) {
    const std::string word = lower(variable.value);
    const auto found =
        std::find_if(known.begin(), known.end(), [&](const auto& k) { return k.first == word; });
    if (found != known.end())
        state_word(import, pointer, found->second, variable.line, name);
    else
        note(import, Finding::warning, name, variable.line,
             fmt::format("\"{}\" is no single choice that is planned: NCCL's own takes its place",
                         shown(variable)),
             fmt::format("--set {}=… forces one", pointer));
}

/// "mlx5_0,mlx5_1:1", "=mlx5_0", and "^mlx5_3" for all but. source: NCCL's documentation, NCCL_IB_HCA
void import_adapters(Import& import, const std::string& name, const EnvironmentVariable& variable) {
    if (variable.value.empty() || variable.value.starts_with('^')) {
        note(import, Finding::ignored, name, variable.line,
             fmt::format("\"{}\" says which adapters are left out, not how many there are", shown(variable)));
        return;
    }
    const auto adapters = 1 + std::count(variable.value.begin(), variable.value.end(), ',');
    figure(import, "network_adapters_per_node", static_cast<double>(adapters), "adapters", name);
    ask(import, "/cluster/inter_node", name, variable.line,
        fmt::format("{} adapters a node; their rate doesn't stand here", adapters),
        "choose a --topology, or tell adapters × rate / GPUs a node with --set "
        "/cluster/inter_node/bytes_per_second_per_gpu=…");
}

/// Variables that take a link away.
struct Disabled {
    std::string_view name, message, hint;
};
constexpr std::array disabled{
    Disabled{"NCCL_P2P_DISABLE", "GPUs of a node don't reach each other directly, which the plan assumes",
             "--set /cluster/intra_node=pcie plans data that goes through the host's memory"},
    Disabled{"NCCL_IB_DISABLE", "NCCL uses sockets instead of InfiniBand or RoCE",
             "--set /cluster/inter_node/kind=ethernet, with the rate of that network"}};

void import_other(Import& import, const std::string& name, const EnvironmentVariable& variable) {
    for (const Disabled& entry : disabled)
        if (entry.name == name && variable.value != "0" && !variable.value.empty()) {
            note(import, Finding::warning, name, variable.line, std::string(entry.message),
                 std::string(entry.hint));
            return;
        }
    note(import, Finding::ignored, name, variable.line,
         fmt::format("= {}: no figure of a plan follows from it", shown(variable)));
}

}  // namespace

Environment environment_of(const std::vector<ShellLine>& lines) {
    Environment environment;
    for (const ShellLine& line : lines)
        for (const std::string& word : line.words)
            if (const std::string_view name = variable_of(word); !name.empty())
                environment[std::string(name)] = {word.substr(name.size() + 1), line.number};
    return environment;
}

bool sets_environment(std::string_view text) {
    for (const TextLine& line : text_lines(text))
        for (const std::string& word : words_of(line.text)) {
            if (!variable_of(word).empty()) return true;
            if (word != "export") break;
        }
    return false;
}

void import_environment(Import& import, const Environment& environment) {
    for (const auto& [name, variable] : environment) {
        if (!name.starts_with("NCCL_"))
            import_allocator(import, name, variable);
        else if (name == "NCCL_ALGO")
            import_choice(import, "/cluster/nccl/algorithm", name, variable,
                          {{"ring", "ring"},
                           {"tree", "tree"},
                           {"nvls", "nvls"},
                           {"nvlstree", "nvls_tree"},
                           {"pat", "pat"},
                           {"collnetdirect", "collnet_direct"},
                           {"collnetchain", "collnet_chain"}});
        else if (name == "NCCL_PROTO")
            import_choice(import, "/cluster/nccl/protocol", name, variable,
                          {{"ll", "ll"}, {"ll128", "ll128"}, {"simple", "simple"}});
        else if (name == "NCCL_IB_HCA")
            import_adapters(import, name, variable);
        else if (name == "NCCL_COLLNET_ENABLE" && variable.value == "1")
            ask(import, "/cluster/inter_node/sharp", name, variable.line,
                "lets NCCL reduce in the network's switches (SHARP); whether they can doesn't stand here",
                "where they can, add --set /cluster/inter_node/sharp=true");
        else
            import_other(import, name, variable);
    }
}

}  // namespace zeroplan
