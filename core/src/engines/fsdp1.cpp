#include <string>
#include <utility>

#include "engines/activation_walk.hpp"
#include "engines/engine.hpp"
#include "engines/fsdp1_flat.hpp"
#include "engines/fsdp1_gradients.hpp"
#include "engines/fsdp1_parameters.hpp"
#include "engines/torch_checks.hpp"
#include "engines/torch_host.hpp"
#include "engines/torch_parallel.hpp"
#include "engines/torch_step.hpp"
#include "engines/torch_units.hpp"

namespace zeroplan {
namespace {

std::vector<std::size_t> flats_of_parameters(const ModelSpec& model,
                                             const std::vector<FlatParameter>& flats) {
    std::vector<std::size_t> result(model.parameters.size(), 0);
    for (std::size_t f = 0; f < flats.size(); ++f)
        for (const PlacedParameter& placed : flats[f].parameters) result[placed.parameter] = f;
    return result;
}

/// The program of every rank. source: torch/distributed/fsdp/_runtime_utils.py (PyTorch 2.6)
class Fsdp1Program {
public:
    Fsdp1Program(const Scenario& scenario, const TorchUnits& units, const std::vector<FlatParameter>& flats)
        : model_(scenario.model),
          training_(scenario.training),
          cluster_(scenario.cluster),
          units_(units),
          flats_(flats),
          flat_of_(flats_of_parameters(model_, flats)),
          builder_(program_),
          optimizer_(training_, builder_),
          shard_group_(builder_),
          parameters_(scenario, flats, builder_, shard_group_),
          gradients_(scenario, flats, flat_of_, builder_, shard_group_) {}

    StepProgram build() {
        build_load();
        build_init();
        program_.step.reserve(3);
        build_earlier_micro_batches(training_.gradient_accumulation_steps - 1);
        build_micro_batch({"last_micro_batch_and_step", 1, {}}, true);
        program_.first_step = first_step_of(program_.step, optimizer_.states(), step_position_);
        program_.save = {"save", 1, {}};
        return std::move(program_);
    }

    HostPhases host() const {
        std::vector<OffloadedShard> shards;
        for (const FlatParameter& flat : flats_)
            shards.push_back({flat.stored.elements(flat.shard) * bytes_per_element(flat.stored.dtype),
                              flat.trainable ? flat.shard * bytes_per_element(training_.gradient_dtype) : 0});
        return fsdp_host(training_, shards, optimizer_.host_bytes());
    }

private:
    using UnitIndex = std::uint32_t;

    bool is_root(UnitIndex u) const { return units_.units[u].is_root; }
    std::uint32_t block_count() const { return static_cast<std::uint32_t>(model_.blocks.size()); }

    void build_load() {
        program_.load = {"load", 1, {}};
        builder_.begin(program_.load);
        parameters_.load(optimizer_);
        workspace_ = allocate_cublas_workspaces(builder_, cluster_.gpu.compute_capability);
    }

    void build_init() {
        program_.init = {"init", 1, {}};
        builder_.begin(program_.init);
        gradients_.allocate_resident();
    }

    /// Under no_sync() the first one leaves gradients, and perhaps parameters, that were not there before.
    void build_earlier_micro_batches(std::uint64_t count) {
        const bool no_sync = training_.fsdp.gradient_sync == GradientSync::last;
        if (no_sync && count > 0) {
            build_micro_batch({"first_micro_batch", 1, {}}, false);
            --count;
        }
        if (count > 0) build_micro_batch({"micro_batch", count, {}}, false);
    }

    void build_micro_batch(Section section, bool last) {
        program_.step.push_back(std::move(section));
        builder_.begin(program_.step.back());
        parameters_.begin_section();
        gradients_.begin_backward(last || training_.fsdp.gradient_sync != GradientSync::last);
        ActivationWalk walk(model_, training_, builder_, parameter_owners(model_), workspace_,
                            ActivationWalk::GradientSums::fresh);
        const ActivationWalk::Hooks hooks{
            .parameters = [this](std::uint32_t p) { return parameters_.values(flat_of_[p]); },
            .gradients = [this](std::uint32_t p) { return gradients_.gradient(p); },
            .accumulate = [](std::uint32_t) { return false; },
            .after = [this](ComputePhase, std::uint32_t,
                            const Operator&) { gradients_.add_second_contributions(); }};
        walk.begin_micro_batch();
        forward(walk, hooks);
        backward(walk, hooks);
        parameters_.free_given_up(0);
        if (last) step();
        builder_.wait_for_all();
    }

    /// Gathers the units that a block reads.
    std::vector<UnitIndex> unshard_for(std::uint32_t block) {
        std::vector<UnitIndex> units = units_read_by(model_, units_, block);
        for (const UnitIndex u : units) parameters_.unshard(u);
        return units;
    }

    void forward(ActivationWalk& walk, const ActivationWalk::Hooks& hooks) {
        parameters_.unshard(0);
        for (std::uint32_t b = 0; b < block_count(); ++b) {
            const std::vector<UnitIndex> units = unshard_for(b);
            walk.forward(b, hooks, parameters_.gather_events(units));
            for (const UnitIndex u : units)
                if (training_.zero_stage == 3 && !is_root(u)) parameters_.reshard(u);
        }
    }

    void backward(ActivationWalk& walk, const ActivationWalk::Hooks& hooks) {
        const std::string prefetch = training_.fsdp.backward_prefetch.value_or("pre");
        for (std::uint32_t b = block_count(); b-- > 0;) {
            const std::vector<UnitIndex> units = unshard_for(b);
            std::vector<OperationId> events = parameters_.gather_events(units);
            if (b > 0 && prefetch == "pre") unshard_for(b - 1);
            walk.backward(b, hooks, std::move(events), false);
            const UnitIndex own = units_.unit_of_block[b];
            for (const UnitIndex u : units)
                if (u != own && !is_root(u)) reshard_after_backward(u);
            if (is_root(own)) continue;
            gradients_.join(own);
            reshard_after_backward(own);
            if (b > 0 && prefetch == "post") unshard_for(b - 1);
            gradients_.reduce();
        }
        gradients_.join(0);
        reshard_after_backward(0);
        gradients_.reduce();
        gradients_.finish_reduction();
    }

    /// Without a reduction, what isn't resharded after forward stays for the next one.
    /// source: torch/distributed/fsdp/_runtime_utils.py (_should_free_in_backward)
    void reshard_after_backward(UnitIndex u) {
        if (gradients_.reduces() || training_.zero_stage != 2) parameters_.reshard(u);
    }

    void step() {
        builder_.wait_for_all();
        step_position_ = builder_.next();
        gradients_.give_to(optimizer_);
        optimizer_.step();
        gradients_.free_after_step();
    }

    const ModelSpec& model_;
    const TrainingConfig& training_;
    const ClusterSpec& cluster_;
    const TorchUnits& units_;
    const std::vector<FlatParameter>& flats_;
    std::vector<std::size_t> flat_of_;  ///< by parameter
    StepProgram program_;
    ProgramBuilder builder_;
    TorchOptimizer optimizer_;
    ProcessGroup shard_group_;
    Fsdp1Parameters parameters_;
    Fsdp1Gradients gradients_;
    BufferId workspace_ = no_buffer;
    OperationId step_position_ = 0;
};

}  // namespace

EngineOutput fsdp1_engine(const Scenario& whole) {
    check_torch(whole);
    const Scenario scenario = rank_scenario(whole);
    const TrainingConfig& training = scenario.training;
    const std::uint64_t ranks = training.shard_group;
    const TorchUnits units = torch_units(scenario.model, training.fsdp.wrap.value_or("layer"));
    const std::vector<FlatParameter> flats = flat_parameters(scenario, units);
    EngineOutput output{.rule_set = "fsdp1 (PyTorch 2.6)",
                        .layout = fsdp1_layout(flats, units, ranks),
                        .allocator = AllocatorKind::caching};
    output.constants.push_back(cublas_workspace_constant(whole.cluster));
    output.communicators =
        1 + (ranks > 1 && ranks < training.data_parallel * training.context_parallel ? 1 : 0);
    Fsdp1Program program(scenario, units, flats);
    output.programs.push_back(program.build());
    output.host.push_back(program.host());
    output.program_ranks.push_back({{0, scenario.world_size() - 1}});
    add_rank_models(output, whole, scenario);
    return output;
}

}  // namespace zeroplan
