#include <string>
#include <utility>

#include "engines/activation_walk.hpp"
#include "engines/ddp_gradients.hpp"
#include "engines/ddp_parameters.hpp"
#include "engines/engine.hpp"
#include "engines/muon.hpp"
#include "engines/torch_checks.hpp"
#include "engines/torch_host.hpp"
#include "engines/torch_parallel.hpp"
#include "engines/torch_step.hpp"
#include "engines/torch_units.hpp"
#include "engines/zero_redundancy.hpp"

namespace zeroplan {
namespace {

/// Every rank holds all parameters and gradients, each a tensor of its own.
class DdpProgram {
public:
    /// `owners`: by parameter, the rank that steps it; empty: every rank steps all of them.
    DdpProgram(const Scenario& scenario, const TorchUnits& units, const std::vector<std::uint64_t>& owners,
               std::uint64_t rank)
        : model_(scenario.model),
          training_(scenario.training),
          cluster_(scenario.cluster),
          owners_(owners),
          rank_(rank),
          builder_(program_),
          optimizer_(training_, builder_),
          parameters_(scenario, units, builder_),
          gradients_(scenario, parameters_, optimizer_, builder_) {}

    StepProgram build() {
        build_load();
        build_init();
        const std::uint64_t micro_batches = training_.gradient_accumulation_steps;
        program_.step.reserve(2);
        if (micro_batches > 1) build_micro_batch({"micro_batch", micro_batches - 1, {}}, false);
        build_micro_batch({"last_micro_batch_and_step", 1, {}}, true);
        program_.first_step = first_step_of(program_.step, optimizer_.states(), step_position_);
        program_.save = {"save", 1, {}};
        return std::move(program_);
    }

    HostPhases host() const {
        std::uint64_t module = 0;
        for (const Parameter& p : model_.parameters)
            // Quantised weights come to the device one by one.
            if (!p.shared_with && p.storage == ParameterStorage::engine)
                module += p.numel * bytes_per_element(training_.parameter_dtype);
        std::vector<OffloadedShard> trained;
        for (const OwnedParameter& owned : optimizer_.parameters()) {
            const std::uint64_t bytes = owned.elements * bytes_per_element(training_.parameter_dtype);
            trained.push_back({bytes, bytes});
        }
        return module_host(training_, module, trained, optimizer_.host_bytes());
    }

private:
    void build_load() {
        program_.load = {"load", 1, {}};
        builder_.begin(program_.load);
        parameters_.load(optimizer_,
                         [this](std::uint32_t p) { return owners_.empty() || owners_[p] == rank_; });
        workspace_ = allocate_cublas_workspaces(builder_, cluster_.gpu.compute_capability);
    }

    void build_init() {
        program_.init = {"init", 1, {}};
        builder_.begin(program_.init);
        gradients_.allocate_resident();
    }

    ActivationWalk::Hooks walk_hooks() {
        return {.parameters = [this](std::uint32_t p) { return parameters_.values(p); },
                .gradients = [this](std::uint32_t p) { return gradients_.gradient(p); },
                .accumulate = [](std::uint32_t) { return false; },
                .before = [this](ComputePhase phase, std::uint32_t block,
                                 const Operator& op) { parameters_.cast_weights(phase, block, op); },
                .after =
                    [this](ComputePhase phase, std::uint32_t, const Operator&) {
                        if (phase == ComputePhase::backward) gradients_.keep_fresh();
                    }};
    }

    void build_micro_batch(Section section, bool last) {
        program_.step.push_back(std::move(section));
        builder_.begin(program_.step.back());
        gradients_.begin_micro_batch(last);
        ActivationWalk walk(model_, training_, builder_, parameter_owners(model_), workspace_,
                            ActivationWalk::GradientSums::fresh);
        const ActivationWalk::Hooks hooks = walk_hooks();
        walk.begin_micro_batch();
        const auto blocks = static_cast<std::uint32_t>(model_.blocks.size());
        for (std::uint32_t b = 0; b < blocks; ++b) walk.forward(b, hooks, {});
        drop_unsaved_casts();
        for (std::uint32_t b = blocks; b-- > 0;) {
            walk.backward(b, hooks, {}, false);
            drop_casts(b);
        }
        if (last) step();
        builder_.wait_for_all();
    }

    void drop_casts(std::uint32_t block) {
        for (const std::uint32_t parameter : model_.blocks[block].parameters)
            if (const std::uint32_t p = owner_of(model_, parameter); !gradients_.is_incomplete(p))
                parameters_.drop_cast(p);
    }

    void drop_unsaved_casts() {
        if (training_.recompute != Recompute::full) return;
        for (std::uint32_t b = 0; b < model_.blocks.size(); ++b)
            if (model_.block_kinds[model_.blocks[b].kind].is_layer) drop_casts(b);
    }

    void step() {
        builder_.wait_for_all();
        step_position_ = gradients_.step();
        if (!owners_.empty()) broadcast_parameters();
        gradients_.free_after_step();
    }

    /// ZeroRedundancyOptimizer: every parameter goes from its owner to all.
    void broadcast_parameters() {
        for (std::uint32_t p = 0; p < model_.parameters.size(); ++p) {
            if (!model_.parameters[p].trainable || model_.parameters[p].shared_with) continue;
            builder_.on_stream(Stream::gather,
                               Collective{.kind = CollectiveKind::broadcast,
                                          .group = GroupKind::world,
                                          .send = {parameters_.stored(p)},
                                          .receive = {parameters_.stored(p)},
                                          .dtype = training_.parameter_dtype,
                                          .elements = model_.parameters[p].numel,
                                          .unit = parameters_.unit(p)},
                               builder_.last(Stream::compute));
        }
    }

    const ModelSpec& model_;
    const TrainingConfig& training_;
    const ClusterSpec& cluster_;
    const std::vector<std::uint64_t>& owners_;
    std::uint64_t rank_;
    StepProgram program_;
    ProgramBuilder builder_;
    TorchOptimizer optimizer_;
    DdpParameters parameters_;
    DdpGradients gradients_;
    BufferId workspace_ = no_buffer;
    OperationId step_position_ = 0;
};

ShardLayout layout_of(const ModelSpec& model, const TorchUnits& units) {
    ShardLayout layout{.shard_group = 1, .units = {}};
    for (const TorchUnit& unit : units.units) {
        UnitLayout entry{.name = unit.name, .block = 0, .parameters = {}, .also_gathers = {}};
        for (const std::uint32_t p : unit.parameters) {
            entry.parameters.push_back({p, entry.numel});
            entry.numel += model.parameters[p].numel;
        }
        entry.padded_numel = entry.numel;
        layout.units.push_back(std::move(entry));
    }
    return layout;
}

std::vector<RankRange> ranges_of(const std::vector<std::uint64_t>& ranks) {
    std::vector<RankRange> ranges;
    for (const std::uint64_t rank : ranks) {
        if (!ranges.empty() && ranges.back().last + 1 == rank)
            ++ranges.back().last;
        else
            ranges.push_back({rank, rank});
    }
    return ranges;
}

}  // namespace

EngineOutput ddp_engine(const Scenario& whole) {
    check_torch(whole);
    const Scenario scenario = rank_scenario(whole);
    const TorchUnits units = torch_units(scenario.model, "layer+embedding+output");
    EngineOutput output{.rule_set = std::string(to_string(scenario.training.engine)) + " (PyTorch 2.6)",
                        .layout = layout_of(scenario.model, units),
                        .allocator = AllocatorKind::caching};
    if (whole.training.optimizer == Optimizer::muon) output.constants.push_back(newton_schulz_constant());
    output.constants.push_back(cublas_workspace_constant(whole.cluster));
    const std::uint64_t ranks = scenario.world_size();
    const std::vector<std::uint64_t> nobody;
    if (scenario.training.engine != EngineKind::ddp_zero_optimizer) {
        DdpProgram program(scenario, units, nobody, 0);
        output.programs.push_back(program.build());
        output.host.push_back(program.host());
        output.program_ranks.push_back({{0, ranks - 1}});
        add_rank_models(output, whole, scenario);
        return output;
    }
    const std::vector<std::uint64_t> owners = zero_redundancy_owners(scenario.model, ranks);
    for (const auto& members : zero_redundancy_groups(scenario.model, owners, ranks)) {
        DdpProgram program(scenario, units, owners, members.front());
        output.programs.push_back(program.build());
        output.host.push_back(program.host());
        output.program_ranks.push_back(ranges_of(members));
    }
    add_rank_models(output, whole, scenario);
    return output;
}

}  // namespace zeroplan
