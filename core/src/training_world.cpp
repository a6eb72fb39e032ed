#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "training_input.hpp"
#include "zeroplan/units.hpp"

namespace zeroplan {
namespace {

[[noreturn]] void fail(const TrainingInput& input, const char* key, std::string message, std::string hint) {
    throw Error(ErrorCode::invalid_input, std::move(message), std::move(hint),
                {input.place.file, fmt::format("{}/{}", input.place.pointer, key)});
}

/// "16 GPUs in use (2 nodes × 8)"
std::string gpus_in_words(const ClusterSpec& cluster) {
    return fmt::format("{} GPU{} in use ({} node{} × {})", cluster.gpus_used,
                       cluster.gpus_used == 1 ? "" : "s", cluster.nodes, cluster.nodes == 1 ? "" : "s",
                       cluster.gpus_per_node);
}

/// "1, 2, 4, 8", at most the ten smallest.
std::string divisors_in_words(std::uint64_t whole) {
    std::vector<std::uint64_t> divisors;
    for (std::uint64_t d = 1; d <= whole && divisors.size() < 10; ++d)
        if (whole % d == 0) divisors.push_back(d);
    return fmt::format("{}", fmt::join(divisors, ", "));
}

/// The degree to blame when the product of the three is no divisor: the first that isn't one by itself, else
/// the last above 1.
const char* culprit(const TrainingConfig& c, std::uint64_t gpus) {
    if (gpus % c.tensor_parallel != 0) return "tensor_parallel";
    if (gpus % c.pipeline_parallel != 0) return "pipeline_parallel";
    if (gpus % c.context_parallel != 0) return "context_parallel";
    return c.context_parallel > 1 ? "context_parallel" : "pipeline_parallel";
}

/// Ranks of one model replica's tensor, pipeline and context parallelism.
std::uint64_t model_parallel(const TrainingConfig& c) {
    return checked_product(checked_product(c.tensor_parallel, c.pipeline_parallel, "product of the degrees"),
                           c.context_parallel, "product of the degrees");
}

std::uint64_t derived_data_parallel(const TrainingConfig& c, const TrainingInput& input,
                                    const ClusterSpec& cluster) {
    const std::uint64_t inner = model_parallel(c), gpus = cluster.gpus_used;
    if (gpus % inner == 0) return gpus / inner;
    fail(input, culprit(c, gpus),
         fmt::format(
             "tensor_parallel {} × pipeline_parallel {} × context_parallel {} = {} ranks don't divide the {}",
             c.tensor_parallel, c.pipeline_parallel, c.context_parallel, inner, gpus_in_words(cluster)),
         fmt::format("choose degrees whose product divides {} ({}), or use {} GPUs", gpus,
                     divisors_in_words(gpus), inner * (gpus / inner + 1)));
}

void check_world(const TrainingConfig& c, const TrainingInput& input, const ClusterSpec& cluster) {
    const std::uint64_t inner = model_parallel(c), gpus = cluster.gpus_used;
    const std::uint64_t ranks = checked_product(c.data_parallel, inner, "product of the degrees");
    if (ranks == gpus) return;
    const std::string hint =
        gpus % inner == 0
            ? fmt::format("data_parallel {} would fit, or leave it out; or use {} GPUs", gpus / inner, ranks)
            : fmt::format("no data_parallel fits: {} doesn't divide {}; or use {} GPUs", inner, gpus, ranks);
    fail(input, "data_parallel",
         fmt::format(
             "data_parallel {} × tensor_parallel {} × pipeline_parallel {} × context_parallel {} = {} ranks, "
             "but there are {}",
             c.data_parallel, c.tensor_parallel, c.pipeline_parallel, c.context_parallel, ranks,
             gpus_in_words(cluster)),
         hint);
}

/// One process has one GPU.
void check_single(const TrainingConfig& c, const TrainingInput& input, const ClusterSpec& cluster) {
    if (c.engine != EngineKind::single || cluster.gpus_used == 1) return;
    fail(input, "engine",
         fmt::format("engine single is one process on one GPU, but there are {}", gpus_in_words(cluster)),
         "use one GPU (--gpus 1, or \"gpus_used\": 1), or engine ddp, which is the same on several");
}

/// Largest divisor of `whole` that is at most `wanted`.
std::uint64_t divisor_below(std::uint64_t whole, std::uint64_t wanted) {
    std::uint64_t best = 1;
    for (std::uint64_t d = 1; d <= whole / d; ++d) {
        if (whole % d != 0) continue;
        for (const std::uint64_t candidate : {d, whole / d})
            if (candidate <= wanted) best = std::max(best, candidate);
    }
    return best;
}

void check_divides(const TrainingInput& input, const char* key, std::uint64_t part, std::uint64_t whole,
                   const std::string& whole_in_words) {
    if (part != 0 && whole % part == 0) return;
    fail(input, key, fmt::format("{} {} doesn't divide {} = {}", key, part, whole_in_words, whole),
         fmt::format("the nearest that does is {}", divisor_below(whole, part)));
}

void fit_groups(TrainingConfig& c, const TrainingInput& input) {
    const std::uint64_t sharing = checked_product(c.data_parallel, c.context_parallel);
    if (c.zero_stage == 0 && input.shard_group.value_or(1) != 1)
        fail(input, "shard_group",
             fmt::format("shard_group is {}, but stage 0 shards nothing", *input.shard_group),
             "choose a zero_stage of 1 to 3, or leave shard_group out");
    if (c.zero_stage == 0 && c.secondary_shard_group != 1)
        fail(input, "secondary_shard_group",
             fmt::format("secondary_shard_group is {}, but stage 0 shards nothing", c.secondary_shard_group),
             "choose zero_stage 3, or leave secondary_shard_group out");
    c.shard_group = c.zero_stage == 0 ? 1 : input.shard_group.value_or(sharing);
    check_divides(input, "shard_group", c.shard_group, sharing, "data_parallel × context_parallel");
    check_divides(input, "secondary_shard_group", c.secondary_shard_group, c.shard_group, "shard_group");

    c.expert_tensor_parallel = input.expert_tensor_parallel.value_or(c.tensor_parallel);
    const std::uint64_t ranks = checked_product(sharing, c.tensor_parallel);
    check_divides(input, "expert_tensor_parallel", c.expert_tensor_parallel, ranks,
                  "data_parallel × context_parallel × tensor_parallel");
    check_divides(input, "expert_parallel", c.expert_parallel, ranks / c.expert_tensor_parallel,
                  "data_parallel × context_parallel × tensor_parallel / expert_tensor_parallel");
}

void check_pipeline_layout(const TrainingConfig& c, const TrainingInput& input, const ModelSpec& model) {
    if (c.pipeline_layout.empty()) return;
    const std::uint64_t stages = checked_product(c.pipeline_parallel, c.virtual_pipeline);
    if (c.pipeline_layout.size() != stages)
        fail(input, "pipeline_layout",
             fmt::format(
                 "pipeline_layout has {} entries, but pipeline_parallel {} × virtual_pipeline {} = {} stages",
                 c.pipeline_layout.size(), c.pipeline_parallel, c.virtual_pipeline, stages),
             "one entry a stage, virtual stages in order");
    std::uint64_t layers = 0;
    for (const std::uint64_t n : c.pipeline_layout) layers = checked_sum(layers, n, "layers");
    if (layers != model.layers)
        fail(input, "pipeline_layout",
             fmt::format("pipeline_layout places {} layers, but the model has {}", layers, model.layers),
             fmt::format("the entries have to add up to {}", model.layers));
}

/// An interleaved schedule takes micro-batches in rounds of one a stage; with some left over its stages would
/// wait for each other for ever. source: Megatron-Core pipeline_parallel/schedules.py (the remainder of the
/// micro-batches is 0 or at least pipeline_parallel); torch pipelining/schedules.py Interleaved1F1B (a
/// multiple of the rounds)
void check_interleaving(const TrainingConfig& c, const TrainingInput& input) {
    if (c.virtual_pipeline == 1 || c.pipeline_parallel == 1) return;
    const std::uint64_t stages = c.pipeline_parallel, micro_batches = c.gradient_accumulation_steps;
    const std::uint64_t rounds = std::max<std::uint64_t>(1, micro_batches / stages);
    const bool torch = c.engine == EngineKind::fsdp2;
    if (micro_batches % (torch ? rounds : stages) == 0) return;
    fail(input, "gradient_accumulation_steps",
         fmt::format("{} micro-batches are no multiple of {} {}, which an interleaved schedule needs",
                     micro_batches, torch ? "its rounds," : "pipeline_parallel", torch ? rounds : stages),
         fmt::format("use {} or {} micro-batches, or virtual_pipeline 1",
                     std::max(stages, micro_batches / stages * stages), round_up(micro_batches, stages)));
}

/// A table of learned positions has no row for a later token.
bool has_learned_positions(const ModelSpec& model) {
    return std::any_of(model.parameters.begin(), model.parameters.end(), [](const Parameter& parameter) {
        return parameter.name.find("wpe.") != std::string::npos ||
               parameter.name.find("embed_positions.") != std::string::npos ||
               parameter.name.find("position_embeddings.") != std::string::npos;
    });
}

void fit_sequence(TrainingConfig& c, const TrainingInput& input, const ModelSpec& model) {
    c.sequence_length = input.sequence_length.value_or(model.max_sequence_length);
    if (c.sequence_length > model.max_sequence_length && has_learned_positions(model))
        fail(input, "sequence_length",
             fmt::format("sequence_length is {}, but model {} has {} learned positions", c.sequence_length,
                         model.name, model.max_sequence_length),
             "shorten the sequence, or override the model's number of positions");
    if (c.sequence_length % c.context_parallel != 0)
        fail(
            input, "context_parallel",
            fmt::format("context_parallel {} doesn't divide sequence_length {}", c.context_parallel,
                        c.sequence_length),
            fmt::format("the nearest that does is {}", divisor_below(c.sequence_length, c.context_parallel)));
}

}  // namespace

TrainingConfig fitted(TrainingConfig config, const TrainingInput& input, const ModelSpec& model,
                      const ClusterSpec& cluster) {
    config.data_parallel =
        input.data_parallel ? *input.data_parallel : derived_data_parallel(config, input, cluster);
    check_world(config, input, cluster);
    check_single(config, input, cluster);
    fit_groups(config, input);
    check_pipeline_layout(config, input, model);
    check_interleaving(config, input);
    fit_sequence(config, input, model);
    return config;
}

}  // namespace zeroplan
