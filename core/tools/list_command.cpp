#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>

#include "nearest.hpp"
#include "subcommand.hpp"
#include "zeroplan/command/output.hpp"
#include "zeroplan/io.hpp"

namespace zeroplan::tool {
namespace {

struct Listing {
    const char* what;
    std::vector<Preset> (*presets)();
};
constexpr std::array listings{Listing{"models", model_presets}, Listing{"topologies", topology_presets},
                              Listing{"gpus", gpu_presets}, Listing{"engines", engine_presets}};

const Listing& find_listing(const std::string& what) {
    for (const Listing& listing : listings)
        if (what == listing.what) return listing;
    std::vector<std::string_view> known;
    for (const Listing& listing : listings) known.push_back(listing.what);
    throw Error(ErrorCode::invalid_input, fmt::format("\"{}\" can't be listed", what),
                nearest_hint(what, known), {"command line", "list"});
}

std::string text_of(const std::vector<Preset>& presets) {
    std::size_t width = 0;
    for (const Preset& preset : presets) width = std::max(width, preset.name.size());
    std::string text;
    for (const Preset& preset : presets)
        text += fmt::format("{:<{}}  {}\n", preset.name, width, preset.summary);
    return text;
}

struct ListFlags {
    std::string what;
    command::OutputFlags output;
};

int run_list(const ListFlags& flags) {
    const std::vector<Preset> presets = find_listing(flags.what).presets();
    if (flags.output.json)
        command::print(presets_json(flags.what, presets));
    else if (!flags.output.quiet)
        command::print(text_of(presets));
    return 0;
}

}  // namespace

void add_list(CLI::App& app, Action& chosen) {
    const auto flags = std::make_shared<ListFlags>();
    CLI::App* list = app.add_subcommand("list", "What is built in: models, topologies, gpus, engines");
    list->add_option("WHAT", flags->what, "models, topologies, gpus or engines")->type_name("")->required();
    command::add_output_flags(*list, flags->output);
    list->footer("Example: which models can be named with --model?\n  zeroplan list models");
    list->callback([flags, &chosen] { chosen = [flags] { return run_list(*flags); }; });
}

}  // namespace zeroplan::tool
