#include <fmt/format.h>

#include <utility>

#include "engines/activation_walk.hpp"
#include "engines/engine.hpp"
#include "engines/native_checks.hpp"
#include "engines/native_gradients.hpp"
#include "engines/native_layout.hpp"
#include "engines/native_parameters.hpp"
#include "engines/native_rank.hpp"

namespace zeroplan {
namespace {

/// cuBLASLt gets one explicit workspace a rank; 32 MiB is what NVIDIA recommends for Hopper and is taken for
/// every GPU.
constexpr std::uint64_t gpu_workspace_bytes = 32ULL << 20;
/// Room for the fp32 tiles in which the host back end multiplies 16-bit operands: two of t × 2t for the
/// operands and one of t × t for the sums, t = 560. A choice of the runner, that plan and run share.
constexpr std::uint64_t host_workspace_bytes = 3ULL * 512 * 1024 * 4;

class NativeProgram {
public:
    NativeProgram(const Scenario& scenario, const ShardLayout& layout)
        : rank_(scenario, layout),
          on_host_(scenario.cluster.gpu.is_host),
          unit_of_parameter_(units_of_parameters(scenario.model)),
          builder_(program_),
          parameters_(rank_, builder_),
          gradients_(rank_, builder_) {}

    StepProgram build() {
        build_load();
        build_init();
        const std::uint64_t micro_batches = training().gradient_accumulation_steps;
        program_.step.reserve(2);
        if (micro_batches > 1) build_micro_batch({"micro_batch", micro_batches - 1, {}}, false);
        build_micro_batch({"last_micro_batch_and_step", 1, {}}, true);
        build_save();
        return std::move(program_);
    }

private:
    using UnitIndex = NativeRank::UnitIndex;

    const TrainingConfig& training() const { return rank_.training; }
    std::uint32_t stage() const { return rank_.stage(); }
    UnitIndex unit_count() const { return rank_.unit_count(); }

    void build_load() {
        program_.load = {"load", 1, {}};
        builder_.begin(program_.load);
        for (UnitIndex u = 0; u < unit_count(); ++u) {
            if (rank_.empty(u)) continue;
            NativeRank::Unit& unit = rank_.units[u];
            unit.parameters = builder_.allocate(
                NativeRank::buffer(BufferRole::parameters, Category::parameters, training().parameter_dtype,
                                   u, stage() == 3 ? rank_.owned(u) : rank_.whole(u)));
            if (training().master_dtype)
                unit.master =
                    builder_.allocate(NativeRank::buffer(BufferRole::master_weights, Category::master_weights,
                                                         *training().master_dtype, u, rank_.owned(u)));
        }
        allocate_workspace();
    }

    /// The host back end multiplies fp32 in place and needs tiles only to widen 16-bit operands.
    void allocate_workspace() {
        if (on_host_ && !is_16_bit(training().compute_dtype)) return;
        const std::uint64_t bytes = on_host_ ? host_workspace_bytes : gpu_workspace_bytes;
        workspace_ = builder_.allocate({.role = BufferRole::workspace,
                                        .category = Category::temporaries,
                                        .dtype = DType::uint8,
                                        .elements = bytes});
    }

    void build_init() {
        program_.init = {"init", 1, {}};
        builder_.begin(program_.init);
        const std::uint32_t states = optimizer_state_tensors(training().optimizer);
        for (UnitIndex u = 0; u < unit_count(); ++u) {
            if (rank_.empty(u)) continue;
            NativeRank::Unit& unit = rank_.units[u];
            unit.gradients =
                builder_.allocate(NativeRank::buffer(BufferRole::gradients, Category::gradients,
                                                     training().gradient_dtype, u, gradients_.resident(u)));
            const auto state = [&](BufferRole role) {
                return builder_.allocate(NativeRank::buffer(
                    role, Category::optimizer_states, training().optimizer_state_dtype, u, rank_.owned(u)));
            };
            if (states >= 1) unit.momentum = state(BufferRole::momentum);
            if (states >= 2) unit.variance = state(BufferRole::variance);
        }
    }

    void build_micro_batch(Section section, bool last) {
        program_.step.push_back(std::move(section));
        builder_.begin(program_.step.back());
        gradients_.begin_micro_batch(last);
        for (NativeRank::Unit& unit : rank_.units) unit.gather = unit.reduced = {};
        ActivationWalk walk(rank_.model, training(), builder_, unit_of_parameter_, workspace_);
        const ActivationWalk::Hooks hooks{
            .parameters = [this](UnitIndex u) { return parameters_.values(u); },
            .gradients = [this](UnitIndex u) { return gradients_.target(u); },
            .accumulate = [this](std::uint32_t parameter) { return gradients_.adds(parameter); }};
        walk.begin_micro_batch();
        forward(walk, hooks);
        backward(walk, hooks);
        if (last) build_step();
        builder_.wait_for_all();
    }

    void forward(ActivationWalk& walk, const ActivationWalk::Hooks& hooks) {
        for (UnitIndex u = 0; u < unit_count(); ++u) {
            parameters_.gather_for(u, u + 1);
            walk.forward(rank_.layout.units[u].block, hooks, parameters_.gather_events(u));
            if (u + 1 != unit_count()) parameters_.release(u);
        }
    }

    void backward(ActivationWalk& walk, const ActivationWalk::Hooks& hooks) {
        const bool sums_where_produced = !gradients_.plan().bucketed;
        gradients_.begin_backward();
        for (UnitIndex u = unit_count(); u-- > 0;) {
            parameters_.gather_for(u, u == 0 ? unit_count() : u - 1);
            std::vector<OperationId> waits = parameters_.gather_events(u);
            gradients_.prepare(u);
            walk.backward(rank_.layout.units[u].block, hooks, std::move(waits), sums_where_produced);
            parameters_.release(u);
            gradients_.reduce_after_backward(u);
        }
        gradients_.end_backward();
    }

    /// Units in the order in which their gradients are ready: the last first.
    void build_step() {
        gradients_.reduce_before_step();
        for (UnitIndex u = unit_count(); u-- > 0;)
            if (!rank_.empty(u)) step_unit(u);
    }

    void step_unit(UnitIndex u) {
        const NativeRank::Unit& unit = rank_.units[u];
        const bool slice_of_whole = stage() == 1 || stage() == 2;
        const OperationId stepped = builder_.on_stream(
            Stream::compute,
            OptimizerStep{.unit = u,
                          .parameters = {unit.parameters, slice_of_whole},
                          .gradients = {unit.gradients, stage() >= 1 && gradients_.plan().full_resident},
                          .master = {unit.master, false},
                          .momentum = {unit.momentum, false},
                          .variance = {unit.variance, false},
                          .elements = rank_.owned(u)},
            unit.reduced);
        if (slice_of_whole)
            builder_.on_stream(
                Stream::gather,
                rank_.all_gather(u, training().parameter_dtype, {unit.parameters, true}, unit.parameters),
                {stepped});
    }

    /// Full parameters, from the master where there is one, gathered unit by unit where no rank holds them
    /// whole.
    void build_save() {
        program_.save = {"save", 1, {}};
        builder_.begin(program_.save);
        const bool has_master = training().master_dtype.has_value();
        if (stage() == 0 || (!has_master && stage() < 3)) return;
        const DType dtype = training().master_dtype.value_or(training().parameter_dtype);
        for (UnitIndex u = 0; u < unit_count(); ++u) {
            if (rank_.empty(u)) continue;
            const BufferId slice = has_master ? rank_.units[u].master : rank_.units[u].parameters;
            const BufferId full = builder_.allocate(NativeRank::buffer(
                BufferRole::consolidated, Category::gathered_parameters, dtype, u, rank_.whole(u)));
            const OperationId gathered =
                builder_.on_stream(Stream::gather, rank_.all_gather(u, dtype, {slice, false}, full));
            builder_.free(full, {gathered});
        }
    }

    NativeRank rank_;
    bool on_host_;
    std::vector<std::uint32_t> unit_of_parameter_;
    StepProgram program_;
    ProgramBuilder builder_;
    NativeParameters parameters_;
    NativeGradients gradients_;
    BufferId workspace_ = no_buffer;
};

constexpr const char* rule_set = "native 1";

}  // namespace

EngineOutput native_engine(const Scenario& scenario) {
    check_native(scenario);
    const std::uint64_t shard_group = scenario.training.zero_stage == 0 ? 1 : scenario.training.shard_group;
    EngineOutput output{.rule_set = rule_set, .layout = native_layout(scenario.model, shard_group)};
    // Only stage 3 gathers and reduces at the same time, which takes a communicator each.
    output.communicators = scenario.training.zero_stage == 3 ? 2 : 1;
    output.programs.push_back(NativeProgram(scenario, output.layout).build());
    output.program_ranks.push_back({{0, scenario.world_size() - 1}});
    return output;
}

}  // namespace zeroplan
