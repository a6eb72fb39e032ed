#include "remedy_ladders.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "gpu_catalogue.hpp"

namespace zeroplan {
namespace {

/// A change of one key that has a flag.
Change flag_change(const char* flag, const char* pointer, const std::string& value) {
    return {fmt::format("{} {}", flag, value), {text_setting(pointer, value, flag)}};
}

Ladder higher_stages(const TrainingConfig& training) {
    Ladder ladder{.price = "more is sharded"};
    for (std::uint32_t stage = training.zero_stage + 1; stage <= 3; ++stage)
        ladder.changes.push_back(flag_change("--zero", "/training/zero_stage", fmt::format("{}", stage)));
    return ladder;
}

Ladder recomputation(const TrainingConfig& training) {
    Ladder ladder{.price = "layers computed twice"};
    const auto to = [&](const char* mode) {
        ladder.changes.push_back(flag_change("--recompute", "/training/recompute", mode));
    };
    if (training.recompute == Recompute::none && training.attention == AttentionKernel::eager)
        to("selective");
    if (training.recompute != Recompute::full) to("full");
    return ladder;
}

Ladder flash_attention(const TrainingConfig& training) {
    Ladder ladder{.price = "another attention kernel"};
    if (training.attention == AttentionKernel::eager)
        ladder.changes.push_back(flag_change("--attention", "/training/attention", "flash"));
    return ladder;
}

/// The same samples a step in more, smaller micro-batches.
Ladder smaller_micro_batches(const TrainingConfig& training) {
    Ladder ladder{.price = "same batch in more passes"};
    const std::uint64_t batch = training.micro_batch_size;
    for (std::uint64_t parts = 2; parts <= batch; ++parts) {
        if (batch % parts != 0) continue;
        const std::string size = fmt::format("{}", batch / parts);
        const std::string steps = fmt::format(
            "{}", checked_product(training.gradient_accumulation_steps, parts, "micro-batches of a step"));
        Change change = flag_change("--micro-batch", "/training/micro_batch_size", size);
        change.flags += " --grad-accum " + steps;
        change.settings.push_back(
            text_setting("/training/gradient_accumulation_steps", steps, "--grad-accum"));
        ladder.changes.push_back(std::move(change));
    }
    return ladder;
}

/// The rest of the node, then twice as many nodes, and so on.
Ladder more_nodes(const ClusterSpec& cluster) {
    Ladder ladder{.price = "more GPUs", .needs_hardware = true, .halving = true};
    if (cluster.gpus_used < cluster.gpus_per_node)
        ladder.changes.push_back(
            flag_change("--gpus", "/cluster/gpus_used", fmt::format("{}", cluster.gpus_per_node)));
    if (cluster.inter_node.kind == InterNodeKind::none) return ladder;
    const std::uint64_t filled = std::max<std::uint64_t>(1, cluster.gpus_used / cluster.gpus_per_node);
    constexpr std::uint64_t most_times = 2048;
    for (std::uint64_t times = 2; times <= most_times; times *= 2)
        ladder.changes.push_back(flag_change("--nodes", "/cluster/nodes", fmt::format("{}", filled * times)));
    return ladder;
}

/// "nvlink" of "nvlink4": a GPU goes where one with the same kind of link was.
std::string link_family(const GpuSpec& gpu) {
    return gpu.link.substr(0, gpu.link.find_first_of("0123456789"));
}

Ladder larger_gpus(const ClusterSpec& cluster) {
    Ladder ladder{.price = "other GPUs", .needs_hardware = true, .gradual = false};
    std::vector<GpuSpec> larger;
    for (GpuSpec& gpu : gpu_catalogue())
        if (gpu.memory_usable > cluster.gpu.memory_usable && !gpu.is_host &&
            link_family(gpu) == link_family(cluster.gpu))
            larger.push_back(std::move(gpu));
    std::sort(larger.begin(), larger.end(),
              [](const GpuSpec& a, const GpuSpec& b) { return a.memory_usable < b.memory_usable; });
    for (const GpuSpec& gpu : larger)
        ladder.changes.push_back({"--gpu " + gpu.name, {word_setting("/cluster/gpu", gpu.name, "--gpu")}});
    return ladder;
}

}  // namespace

Ladder shorter_sequences(const Scenario& scenario) {
    Ladder ladder{.price = "shorter samples"};
    if (scenario.model.batch != BatchKind::tokens) return ladder;
    constexpr std::uint64_t shortest = 256;  // below, models of text are rarely trained
    for (std::uint64_t length = scenario.training.sequence_length;
         length % 2 == 0 && length / 2 >= shortest;) {
        length /= 2;
        ladder.changes.push_back(
            flag_change("--seq", "/training/sequence_length", fmt::format("{}", length)));
    }
    return ladder;
}

std::vector<Ladder> remedy_ladders(const Scenario& scenario) {
    std::vector<Ladder> ladders{higher_stages(scenario.training), smaller_micro_batches(scenario.training)};
    if (scenario.model.batch == BatchKind::tokens) {
        ladders.push_back(recomputation(scenario.training));
        ladders.push_back(flash_attention(scenario.training));
    }
    if (!scenario.cluster.gpu.is_host) {
        ladders.push_back(more_nodes(scenario.cluster));
        ladders.push_back(larger_gpus(scenario.cluster));
    }
    return ladders;
}

}  // namespace zeroplan
