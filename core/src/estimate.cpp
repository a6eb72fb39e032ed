#include "zeroplan/estimate.hpp"

#include <algorithm>

#include "engines/engine.hpp"
#include "fold/layer_run.hpp"
#include "fold/live_curve.hpp"
#include "runs_all_reduce.hpp"
#include "zeroplan/runtime_memory.hpp"

namespace zeroplan {
namespace {

/// Layers at each end of the run that may be unlike those between: the first and last themselves, and the
/// neighbours that prefetching and buckets join to them.
constexpr std::uint32_t ends = 3;

MemoryEstimate estimated(const Scenario& scenario, const EngineOutput& engine, LivePeak peak,
                         std::uint64_t repeated_layers) {
    const RuntimeMemory runtime =
        runtime_memory(scenario, {engine.communicators, runs_all_reduce(engine.programs)});
    return {.peak_live = peak.live,
            .phase = peak.phase,
            .runtime_low = runtime.low,
            .runtime = runtime.expected,
            .repeated_layers = repeated_layers};
}

/// Whether equal layers are treated alike by the engine and by all that is asked of them. The others fill
/// buckets across layers, or build each rank's layers anew.
bool treats_layers_alike(const TrainingConfig& training) {
    const bool by_block = training.engine == EngineKind::native || training.engine == EngineKind::fsdp1 ||
                          training.engine == EngineKind::fsdp2;
    const std::uint64_t parts = std::max({training.tensor_parallel, training.pipeline_parallel,
                                          training.context_parallel, training.expert_parallel});
    return by_block && parts == 1 && training.recompute_every == 1;
}

/// The scenario with `model` in place of its own.
Scenario with(const Scenario& scenario, ModelSpec model) {
    return {.model = std::move(model),
            .training = scenario.training,
            .cluster = scenario.cluster,
            .run = scenario.run,
            .model_json = {}};
}

/// The job with fewer of its equal layers.
struct Folded {
    LayerRun run;
    Scenario scenario;
    EngineOutput engine;

    Folded(const Scenario& whole, LayerRun all, std::uint32_t kept)
        : run{all.first, kept},
          scenario(with(whole, shortened(whole.model, all, kept))),
          engine(run_engine(scenario)) {}

    std::optional<std::vector<LiveMoment>> moments(std::size_t program) const {
        return live_curve(engine.programs[program], scenario.model, engine.layout, run, ends);
    }
};

std::optional<MemoryEstimate> folded(const Scenario& scenario) {
    const LayerRun run = longest_run(scenario.model);
    constexpr std::uint32_t few = 2 * ends, one_more = few + 1;
    if (!treats_layers_alike(scenario.training) || run.count <= one_more) return std::nullopt;
    const Folded shorter(scenario, run, few), longer(scenario, run, one_more);
    const std::vector<StepProgram>& programs = shorter.engine.programs;
    if (programs.size() != longer.engine.programs.size()) return std::nullopt;
    LivePeak highest;
    for (std::size_t p = 0; p < programs.size(); ++p) {
        const auto few_moments = shorter.moments(p), more_moments = longer.moments(p);
        if (!few_moments || !more_moments) return std::nullopt;
        const auto peak = carried_on(*few_moments, *more_moments, run.count - few);
        if (!peak) return std::nullopt;
        if (peak->live > highest.live) highest = *peak;
    }
    return estimated(scenario, shorter.engine, highest, run.count);
}

MemoryEstimate walked(const Scenario& scenario) {
    const EngineOutput engine = run_engine(scenario);
    LivePeak highest;
    for (const StepProgram& program : engine.programs)
        if (const LivePeak peak = highest_live(program); peak.live > highest.live) highest = peak;
    return estimated(scenario, engine, highest, 0);
}

}  // namespace

MemoryEstimate estimate_memory(const Scenario& scenario) {
    if (const auto estimate = folded(scenario)) return *estimate;
    return walked(scenario);
}

}  // namespace zeroplan
