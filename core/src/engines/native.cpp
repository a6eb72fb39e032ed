#include <algorithm>
#include <deque>

#include <fmt/format.h>

#include "engines/activation_walk.hpp"
#include "engines/engine.hpp"
#include "engines/native_checks.hpp"
#include "engines/native_layout.hpp"

namespace zeroplan {
namespace {

/// cuBLASLt gets one explicit workspace a rank; 32 MiB is what NVIDIA recommends for Hopper and is taken for
/// every GPU.
constexpr std::uint64_t gpu_workspace_bytes = 32ULL << 20;
/// Room for the fp32 tiles in which the host back end multiplies 16-bit operands: two of t × 2t for the
/// operands and one of t × t for the sums, t = 560. A choice of the runner, that plan and run share.
constexpr std::uint64_t host_workspace_bytes = 3ULL * 512 * 1024 * 4;

/// How gradients get from backward to the optimizer; decided by stage, synchronisation and micro-batches.
struct GradientPlan {
    bool bucketed = false;       ///< backward writes into a unit-sized buffer that is reduced at once
    bool full_resident = false;  ///< every rank keeps a unit's whole gradient between steps
};

GradientPlan gradient_plan(const TrainingConfig& training) {
    const bool several = training.gradient_accumulation_steps > 1;
    const bool sharded = training.zero_stage >= 2;
    const GradientSync sync =
        training.fsdp.gradient_sync.value_or(sharded ? GradientSync::always : GradientSync::last);
    const bool local_sums = several && sync == GradientSync::last;
    return {.bucketed = local_sums ? false : sharded || several, .full_resident = !sharded || local_sums};
}

/// A unit's resident buffers.
struct UnitState {
    BufferId parameters = no_buffer, gradients = no_buffer, master = no_buffer, momentum = no_buffer,
             variance = no_buffer;
    BufferId gathered = no_buffer;     ///< live copy of the whole unit at stage 3
    std::vector<OperationId> gather;   ///< the operation that fills it, if issued in this section
    std::vector<OperationId> reduced;  ///< the last operation that changes the unit's gradients
};

class NativeProgram {
public:
    NativeProgram(const Scenario& scenario, const ShardLayout& layout)
        : model_(scenario.model),
          training_(scenario.training),
          layout_(layout),
          on_host_(scenario.cluster.gpu.is_host),
          gradients_(gradient_plan(scenario.training)),
          replicas_(scenario.training.data_parallel / layout.shard_group),
          unit_of_parameter_(units_of_parameters(scenario.model)),
          builder_(program_),
          units_(layout.units.size()) {}

    StepProgram build() {
        build_load();
        build_init();
        const std::uint64_t micro_batches = training_.gradient_accumulation_steps;
        program_.step.reserve(2);
        if (micro_batches > 1) build_micro_batch({"micro_batch", micro_batches - 1, {}}, false);
        build_micro_batch({"last_micro_batch_and_step", 1, {}}, true);
        build_save();
        return std::move(program_);
    }

private:
    using UnitIndex = std::uint32_t;

    std::uint32_t stage() const { return training_.zero_stage; }
    UnitIndex unit_count() const { return static_cast<UnitIndex>(units_.size()); }
    bool empty(UnitIndex unit) const { return layout_.units[unit].padded_numel == 0; }
    std::uint64_t whole(UnitIndex unit) const { return layout_.units[unit].padded_numel; }
    std::uint64_t owned(UnitIndex unit) const {
        return stage() >= 1 ? layout_.slice_numel(unit) : whole(unit);
    }
    UnitIndex last_unit() const { return unit_count() - 1; }

    Buffer unit_buffer(BufferRole role, Category category, DType dtype, UnitIndex unit,
                       std::uint64_t numel) const {
        return {.role = role, .category = category, .dtype = dtype, .owner = unit, .elements = numel};
    }

    void build_load() {
        program_.load = {"load", 1, {}};
        builder_.begin(program_.load);
        for (UnitIndex u = 0; u < unit_count(); ++u) {
            if (empty(u)) continue;
            units_[u].parameters = builder_.allocate(unit_buffer(BufferRole::parameters, Category::parameters,
                                                                 training_.parameter_dtype, u,
                                                                 stage() == 3 ? owned(u) : whole(u)));
            if (training_.master_dtype)
                units_[u].master =
                    builder_.allocate(unit_buffer(BufferRole::master_weights, Category::master_weights,
                                                  *training_.master_dtype, u, owned(u)));
        }
        allocate_workspace();
    }

    /// The host back end multiplies fp32 in place and needs tiles only to widen 16-bit operands.
    void allocate_workspace() {
        if (on_host_ && !is_16_bit(training_.compute_dtype)) return;
        const std::uint64_t bytes = on_host_ ? host_workspace_bytes : gpu_workspace_bytes;
        workspace_ = builder_.allocate({.role = BufferRole::workspace,
                                        .category = Category::temporaries,
                                        .dtype = DType::uint8,
                                        .elements = bytes});
    }

    void build_init() {
        program_.init = {"init", 1, {}};
        builder_.begin(program_.init);
        const std::uint32_t states = optimizer_state_tensors(training_.optimizer);
        for (UnitIndex u = 0; u < unit_count(); ++u) {
            if (empty(u)) continue;
            units_[u].gradients = builder_.allocate(
                unit_buffer(BufferRole::gradients, Category::gradients, training_.gradient_dtype, u,
                            gradients_.full_resident ? whole(u) : owned(u)));
            const auto state = [&](BufferRole role) {
                return builder_.allocate(unit_buffer(role, Category::optimizer_states,
                                                     training_.optimizer_state_dtype, u, owned(u)));
            };
            if (states >= 1) units_[u].momentum = state(BufferRole::momentum);
            if (states >= 2) units_[u].variance = state(BufferRole::variance);
        }
    }

    void build_micro_batch(Section section, bool last) {
        program_.step.push_back(std::move(section));
        builder_.begin(program_.step.back());
        last_micro_batch_ = last;
        buckets_.clear();
        for (UnitState& unit : units_) unit.gather = unit.reduced = {};

        ActivationWalk walk(model_, training_, builder_, unit_of_parameter_, workspace_);
        const ActivationWalk::Hooks hooks = walk_hooks();
        walk.begin_micro_batch();
        for (UnitIndex u = 0; u < unit_count(); ++u) {
            gather_for(u, u + 1);
            walk.forward(layout_.units[u].block, hooks, gather_events(u));
            if (u != last_unit()) release_gathered(u);
        }
        tied_written_.assign(unit_count(), false);
        for (UnitIndex u = unit_count(); u-- > 0;) {
            gather_for(u, u == 0 ? unit_count() : u - 1);
            std::vector<OperationId> waits = gather_events(u);
            prepare_gradients(u);
            walk.backward(layout_.units[u].block, hooks, std::move(waits), sums_where_produced());
            release_gathered(u);
            reduce_after_backward(u);
        }
        while (!buckets_.empty()) free_oldest_bucket();
        if (last) build_step();
        builder_.wait_for_all();
    }

    ActivationWalk::Hooks walk_hooks() {
        return {.parameters =
                    [this](UnitIndex u) { return stage() == 3 ? units_[u].gathered : units_[u].parameters; },
                .gradients = [this](UnitIndex u) { return gradient_target(u); },
                .accumulate =
                    [this](std::uint32_t parameter) {
                        // Backward meets the tied use in the last unit first; the owner's own use then adds
                        // to it.
                        return !gradients_.bucketed && !model_.parameters[parameter].shared_with &&
                               tied_parameters().at(parameter);
                    }};
    }

    /// True for parameters that a later unit uses too.
    const std::vector<bool>& tied_parameters() {
        if (tied_.empty()) {
            tied_.assign(model_.parameters.size(), false);
            for (const Parameter& parameter : model_.parameters)
                if (parameter.shared_with) tied_[*parameter.shared_with] = true;
        }
        return tied_;
    }

    // --- parameters
    // ---------------------------------------------------------------------------------------------

    /// Units whose flat buffers the block of `unit` reads: its own and those of its tied weights.
    std::vector<UnitIndex> needed_units(UnitIndex unit) const {
        std::vector<UnitIndex> needed{unit};
        const auto& tied = layout_.units[unit].also_gathers;
        needed.insert(needed.end(), tied.begin(), tied.end());
        return needed;
    }

    /// Stage 3: `unit` is gathered if it isn't yet, then `next` is prefetched (depth 1); unit_count() =
    /// nothing next.
    void gather_for(UnitIndex unit, UnitIndex next) {
        if (stage() != 3) return;
        for (const UnitIndex u : needed_units(unit)) gather(u);
        if (next < unit_count())
            for (const UnitIndex u : needed_units(next)) gather(u);
    }

    void gather(UnitIndex unit) {
        UnitState& state = units_[unit];
        if (empty(unit) || state.gathered != no_buffer) return;
        state.gathered =
            builder_.allocate(unit_buffer(BufferRole::gathered_parameters, Category::gathered_parameters,
                                          training_.parameter_dtype, unit, whole(unit)));
        state.gather = {builder_.on_stream(Stream::gather, Collective{.kind = CollectiveKind::all_gather,
                                                                      .group = GroupKind::shard_group,
                                                                      .send = {state.parameters, false},
                                                                      .receive = {state.gathered, false},
                                                                      .dtype = training_.parameter_dtype,
                                                                      .elements = whole(unit),
                                                                      .unit = unit})};
    }

    std::vector<OperationId> gather_events(UnitIndex unit) const {
        std::vector<OperationId> events;
        if (stage() != 3) return events;
        for (const UnitIndex u : needed_units(unit))
            events.insert(events.end(), units_[u].gather.begin(), units_[u].gather.end());
        return events;
    }

    /// Right after use. A tied unit that the prefetched neighbour needs as well stays for it.
    void release_gathered(UnitIndex unit) {
        if (stage() != 3) return;
        for (const UnitIndex u : needed_units(unit)) {
            if (units_[u].gathered == no_buffer || is_prefetched_elsewhere(u, unit)) continue;
            builder_.free(units_[u].gathered, builder_.last(Stream::compute));
            units_[u].gathered = no_buffer;
            units_[u].gather = {};
        }
    }

    /// True if a neighbour whose own buffer is live (prefetched for the next use) reads `unit` too.
    bool is_prefetched_elsewhere(UnitIndex unit, UnitIndex user) const {
        for (UnitIndex other = 0; other < unit_count(); ++other) {
            if (other == user || units_[other].gathered == no_buffer) continue;
            for (const UnitIndex u : needed_units(other))
                if (u == unit && other != unit) return true;
        }
        return false;
    }

    // --- gradients
    // ----------------------------------------------------------------------------------------------

    bool sums_where_produced() const { return !gradients_.bucketed; }

    BufferId gradient_target(UnitIndex unit) const {
        if (!gradients_.bucketed) return units_[unit].gradients;
        for (const Bucket& bucket : buckets_)
            if (bucket.unit == unit && bucket.events.empty()) return bucket.buffer;
        return no_buffer;
    }

    struct Bucket {
        UnitIndex unit = 0;
        BufferId buffer = no_buffer;
        std::vector<OperationId> events;  ///< the last operation that uses it, once issued
    };

    void prepare_gradients(UnitIndex unit) {
        if (!gradients_.bucketed) return;
        const std::vector<UnitIndex> needed = needed_units(unit);
        // Two, unless one backward writes into more at once: then only its own may be live.
        const std::size_t limit = std::max(bucket_limit, needed.size());
        for (const UnitIndex u : needed) {
            if (empty(u)) continue;
            while (buckets_.size() >= limit) free_oldest_bucket();
            const BufferId buffer =
                builder_.allocate(unit_buffer(BufferRole::gradient_bucket, Category::communication_buffers,
                                              training_.gradient_dtype, u, whole(u)));
            buckets_.push_back({u, buffer, {}});
        }
    }

    void free_oldest_bucket() {
        builder_.free(buckets_.front().buffer, buckets_.front().events);
        buckets_.pop_front();
    }

    void reduce_after_backward(UnitIndex unit) {
        const std::vector<OperationId> produced = builder_.last(Stream::compute);
        if (gradients_.bucketed) {
            for (Bucket& bucket : buckets_)
                if (bucket.events.empty()) reduce_bucket(bucket, produced);
            return;
        }
        // A tied weight's gradient is whole only after its owner's backward; units own theirs otherwise.
        if (last_micro_batch_ && stage() != 1 && !empty(unit))
            reduce_in_place(unit, units_[unit].gradients, produced);
    }

    /// all_reduce at stage 0, else reduce_scatter into the own slice (and its sum over the replicas), all in
    /// place.
    OperationId reduce_in_place(UnitIndex unit, BufferId buffer, std::vector<OperationId> waits) {
        const bool sharded = stage() >= 1;
        OperationId event = builder_.on_stream(
            Stream::reduce,
            Collective{.kind = sharded ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
                       .group = sharded ? GroupKind::shard_group : GroupKind::world,
                       .send = {buffer, false},
                       .receive = {buffer, sharded},
                       .dtype = training_.reduce_dtype,
                       .elements = whole(unit),
                       .unit = unit},
            std::move(waits));
        if (sharded && replicas_ > 1)
            event = builder_.on_stream(Stream::reduce, Collective{.kind = CollectiveKind::all_reduce,
                                                                  .group = GroupKind::replica_group,
                                                                  .send = {buffer, true},
                                                                  .receive = {buffer, true},
                                                                  .dtype = training_.reduce_dtype,
                                                                  .elements = layout_.slice_numel(unit),
                                                                  .unit = unit});
        units_[unit].reduced = {event};
        return event;
    }

    void reduce_bucket(Bucket& bucket, const std::vector<OperationId>& produced) {
        const bool sharded = stage() >= 1;
        reduce_in_place(bucket.unit, bucket.buffer, produced);
        const OperationId event = builder_.on_stream(
            Stream::reduce,
            Accumulate{.from = {bucket.buffer, sharded},
                       .to = {units_[bucket.unit].gradients, sharded && gradients_.full_resident},
                       .unit = bucket.unit,
                       .always_add = tied_written_[bucket.unit]});
        tied_written_[bucket.unit] = true;
        units_[bucket.unit].reduced = {event};
        bucket.events = {event};
    }

    // --- step and checkpoint
    // -------------------------------------------------------------------------------------

    /// Units in the order in which their gradients are ready: the last first.
    void build_step() {
        if (stage() == 1 && !gradients_.bucketed)
            for (UnitIndex u = unit_count(); u-- > 0;)
                if (!empty(u)) reduce_in_place(u, units_[u].gradients, builder_.last(Stream::compute));
        for (UnitIndex u = unit_count(); u-- > 0;) {
            if (empty(u)) continue;
            const UnitState& state = units_[u];
            const bool slice_of_whole = stage() == 1 || stage() == 2;
            const OperationId stepped = builder_.on_stream(
                Stream::compute,
                OptimizerStep{.unit = u,
                              .parameters = {state.parameters, slice_of_whole},
                              .gradients = {state.gradients, stage() >= 1 && gradients_.full_resident},
                              .master = {state.master, false},
                              .momentum = {state.momentum, false},
                              .variance = {state.variance, false},
                              .elements = owned(u)},
                state.reduced);
            if (slice_of_whole)
                builder_.on_stream(Stream::gather,
                                   Collective{.kind = CollectiveKind::all_gather,
                                              .group = GroupKind::shard_group,
                                              .send = {state.parameters, true},
                                              .receive = {state.parameters, false},
                                              .dtype = training_.parameter_dtype,
                                              .elements = whole(u),
                                              .unit = u},
                                   {stepped});
        }
    }

    /// Full parameters, from the master where there is one, gathered unit by unit where no rank holds them
    /// whole.
    void build_save() {
        program_.save = {"save", 1, {}};
        builder_.begin(program_.save);
        const bool has_master = training_.master_dtype.has_value();
        if (stage() == 0 || (!has_master && stage() < 3)) return;
        for (UnitIndex u = 0; u < unit_count(); ++u) {
            if (empty(u)) continue;
            const DType dtype = has_master ? *training_.master_dtype : training_.parameter_dtype;
            const BufferId source = has_master ? units_[u].master : units_[u].parameters;
            const BufferId full = builder_.allocate(
                unit_buffer(BufferRole::consolidated, Category::gathered_parameters, dtype, u, whole(u)));
            const OperationId gathered =
                builder_.on_stream(Stream::gather, Collective{.kind = CollectiveKind::all_gather,
                                                              .group = GroupKind::shard_group,
                                                              .send = {source, false},
                                                              .receive = {full, false},
                                                              .dtype = dtype,
                                                              .elements = whole(u),
                                                              .unit = u});
            builder_.free(full, {gathered});
        }
    }

    static constexpr std::size_t bucket_limit = 2;

    const ModelSpec& model_;
    const TrainingConfig& training_;
    const ShardLayout& layout_;
    bool on_host_;
    GradientPlan gradients_;
    std::uint64_t replicas_;
    std::vector<std::uint32_t> unit_of_parameter_;
    StepProgram program_;
    ProgramBuilder builder_;
    std::vector<UnitState> units_;
    std::deque<Bucket> buckets_;
    std::vector<bool> tied_;
    std::vector<bool> tied_written_;  ///< units whose gradients this micro-batch has contributed to already
    BufferId workspace_ = no_buffer;
    bool last_micro_batch_ = false;
};

constexpr const char* rule_set = "native 1";

/// Only one version of the engine's rules exists; another one asked for is answered with it, and said so.
std::vector<Warning> version_warnings(const std::string& engine_version) {
    if (engine_version.empty() || engine_version == rule_set) return {};
    return {{"engine_version", fmt::format("engine_version is '{}', the rules used are those of {}",
                                           engine_version, rule_set)}};
}

}  // namespace

EngineOutput native_engine(const Scenario& scenario) {
    check_native(scenario);
    const std::uint64_t shard_group = scenario.training.zero_stage == 0 ? 1 : scenario.training.shard_group;
    EngineOutput output{.rule_set = rule_set, .layout = native_layout(scenario.model, shard_group)};
    // Only stage 3 gathers and reduces at the same time, which takes a communicator each.
    output.communicators = scenario.training.zero_stage == 3 ? 2 : 1;
    output.programs.push_back(NativeProgram(scenario, output.layout).build());
    output.program_ranks.push_back({{0, scenario.world_size() - 1}});
    output.warnings = version_warnings(scenario.training.engine_version);
    return output;
}

}  // namespace zeroplan
