#include <algorithm>
#include <deque>
#include <utility>

#include "engines/activation_walk.hpp"
#include "engines/engine.hpp"
#include "engines/parameter_storage.hpp"
#include "engines/torch_checks.hpp"
#include "engines/torch_host.hpp"
#include "engines/torch_parallel.hpp"
#include "engines/torch_step.hpp"
#include "engines/torch_units.hpp"
#include "zeroplan/units.hpp"

namespace zeroplan {
namespace {

// Source of the rules: torch/distributed/fsdp (PyTorch 2.6): _flat_param.py, _runtime_utils.py,
// _limiter_utils.py.

/// Frees that may be outstanding before a gather waits for the oldest (_FreeEventQueue).
constexpr std::size_t outstanding_frees = 2;
constexpr std::uint64_t alignment_bytes = 16;

/// A flat parameter: the trained or the frozen parameters of a unit, each aligned, the end padded.
struct FlatParameter {
    std::uint32_t unit = 0;
    std::vector<PlacedParameter> parameters;
    std::uint64_t numel = 0, padded = 0;  ///< padded to the ranks
    bool trainable = true;
    StoredAs stored, gathered_as;        ///< resident, and while in use
    std::uint64_t statistics_bytes = 0;  ///< of quantised weights; every rank keeps all of them
    BufferId shard = no_buffer;          ///< resident; no_buffer on the host
    BufferId whole = no_buffer;          ///< gathered, or cast where nothing is sharded
    BufferId gradient = no_buffer;       ///< of the shard
    std::vector<OperationId> gathered;
};

/// The parameters of a unit that `like` agrees with: trained or frozen, and stored alike.
FlatParameter flatten(const Scenario& scenario, std::uint32_t unit,
                      const std::vector<std::uint32_t>& parameters, bool trainable, bool packed) {
    const DType compute = storage_dtype(scenario.training.compute_dtype);
    FlatParameter flat{.unit = unit, .parameters = {}, .trainable = trainable, .gathered = {}};
    const std::uint64_t alignment = alignment_bytes / bytes_per_element(compute);
    for (const std::uint32_t p : parameters) {
        const Parameter& parameter = scenario.model.parameters[p];
        const StoredAs stored = stored_as(parameter, scenario.training.parameter_dtype);
        if (parameter.trainable != trainable || stored.packed != packed) continue;
        flat.stored = stored;
        const std::uint64_t offset = round_up(flat.numel, alignment);
        flat.parameters.push_back({p, offset});
        flat.numel = offset + parameter.numel;
        flat.statistics_bytes += statistics_bytes(parameter);
    }
    flat.gathered_as = packed ? flat.stored : StoredAs{compute};
    flat.padded = round_up(flat.numel, scenario.training.shard_group);
    return flat;
}

class Fsdp1Program {
public:
    Fsdp1Program(const Scenario& scenario, const TorchUnits& units, std::vector<FlatParameter> flats)
        : model_(scenario.model),
          training_(scenario.training),
          cluster_(scenario.cluster),
          units_(units),
          ranks_(scenario.training.shard_group),
          replicas_(scenario.training.data_parallel * scenario.training.context_parallel / ranks_),
          compute_(storage_dtype(scenario.training.compute_dtype)),
          builder_(program_),
          optimizer_(training_, builder_),
          flats_(std::move(flats)),
          flat_of_(model_.parameters.size(), 0),
          gradients_(model_.parameters.size(), no_buffer) {}

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
        std::vector<OffloadedShard> shards;
        for (const FlatParameter& flat : flats_)
            shards.push_back(
                {flat.stored.elements(shard_of(flat)) * bytes_per_element(flat.stored.dtype),
                 flat.trainable ? shard_of(flat) * bytes_per_element(training_.gradient_dtype) : 0});
        return fsdp_host(training_, shards, optimizer_.host_bytes());
    }

private:
    using UnitIndex = std::uint32_t;
    /// What reductions of one unit still use.
    struct Reduced {
        std::vector<BufferId> buffers;
        std::vector<OperationId> after;
    };

    bool sharded() const { return training_.zero_stage > 0; }
    bool on_host() const { return training_.offload_parameters != OffloadTarget::none; }
    bool accumulates() const { return training_.gradient_accumulation_steps > 1; }
    std::uint64_t shard_of(const FlatParameter& flat) const { return flat.padded / ranks_; }
    UnitIndex unit_count() const { return static_cast<UnitIndex>(units_.units.size()); }
    bool is_root(UnitIndex u) const { return units_.units[u].is_root; }

    std::vector<std::size_t> flats_of(UnitIndex u) const {
        std::vector<std::size_t> result;
        for (std::size_t f = 0; f < flats_.size(); ++f)
            if (flats_[f].unit == u) result.push_back(f);
        return result;
    }

    Buffer buffer(BufferRole role, Category category, DType dtype, const FlatParameter& flat,
                  std::uint64_t elements) const {
        return {.role = role, .category = category, .dtype = dtype, .owner = flat.unit, .elements = elements};
    }

    void build_load() {
        program_.load = {"load", 1, {}};
        builder_.begin(program_.load);
        for (std::size_t f = 0; f < flats_.size(); ++f) {
            FlatParameter& flat = flats_[f];
            for (const PlacedParameter& placed : flat.parameters) flat_of_[placed.parameter] = f;
            if (!on_host()) flat.shard = flatten_and_shard(flat);
            if (flat.statistics_bytes > 0)
                builder_.allocate(buffer(BufferRole::parameters, Category::parameters, DType::uint8, flat,
                                         flat.statistics_bytes));
            if (flat.trainable)
                optimizer_.add({.parameter = flat.parameters.front().parameter,
                                .unit = flat.unit,
                                .elements = shard_of(flat),
                                .shape = {shard_of(flat)},
                                .values = flat.shard});
        }
        const std::uint64_t workspace = cublas_workspace_bytes(cluster_.gpu.compute_capability);
        for (int thread = 0; thread < 2; ++thread)
            workspace_ = builder_.allocate({.role = BufferRole::workspace,
                                            .category = Category::temporaries,
                                            .dtype = DType::uint8,
                                            .elements = workspace});
    }

    /// A unit's parameters come to the device as they are, are copied into the flat one, and that is cut.
    BufferId flatten_and_shard(const FlatParameter& flat) {
        const auto parameters = [&](std::uint64_t numel) {
            return buffer(BufferRole::parameters, Category::parameters, flat.stored.dtype, flat,
                          flat.stored.elements(numel));
        };
        std::vector<BufferId> originals;
        for (const PlacedParameter& placed : flat.parameters)
            originals.push_back(builder_.allocate(parameters(model_.parameters[placed.parameter].numel)));
        const BufferId whole = builder_.allocate(parameters(flat.padded));
        for (const BufferId original : originals) builder_.free(original);
        if (!sharded()) return whole;
        const BufferId shard = builder_.allocate(parameters(shard_of(flat)));
        builder_.free(whole);
        return shard;
    }

    void build_init() {
        program_.init = {"init", 1, {}};
        builder_.begin(program_.init);
        if (!accumulates() || on_host()) return;
        for (FlatParameter& flat : flats_)
            if (flat.trainable)
                flat.gradient = builder_.allocate(buffer(BufferRole::gradients, Category::gradients,
                                                         training_.gradient_dtype, flat, shard_of(flat)),
                                                  Stream::reduce);
    }

    void build_micro_batch(Section section, bool last) {
        program_.step.push_back(std::move(section));
        builder_.begin(program_.step.back());
        std::vector<std::uint32_t> every_parameter(model_.parameters.size());
        for (std::uint32_t p = 0; p < every_parameter.size(); ++p) every_parameter[p] = owner_of(model_, p);
        ActivationWalk walk(model_, training_, builder_, std::move(every_parameter), workspace_,
                            ActivationWalk::GradientSums::fresh);
        const ActivationWalk::Hooks hooks{
            .parameters =
                [this](std::uint32_t p) {
                    const FlatParameter& flat = flats_[flat_of_[p]];
                    return flat.whole != no_buffer ? flat.whole : flat.shard;
                },
            .gradients = [this](std::uint32_t p) { return gradient(p); },
            .accumulate = [](std::uint32_t) { return false; },
            .after = [this](ComputePhase, std::uint32_t, const Operator&) { add_second_contributions(); }};
        walk.begin_micro_batch();
        forward(walk, hooks);
        backward(walk, hooks);
        free_given_up(0);
        if (last) step();
        builder_.wait_for_all();
    }

    std::vector<UnitIndex> units_of(std::uint32_t block) const {
        std::vector<UnitIndex> result{units_.unit_of_block[block]};
        for (const std::uint32_t p : model_.blocks[block].parameters) {
            const UnitIndex u = units_.unit_of_parameter[p];
            if (std::find(result.begin(), result.end(), u) == result.end()) result.push_back(u);
        }
        return result;
    }

    // --- parameters

    /// The low-precision copy of the shard goes as soon as it is gathered. Where nothing is sharded it is the
    /// whole parameter, and stays.
    void unshard(UnitIndex u) {
        for (const std::size_t f : flats_of(u)) {
            FlatParameter& flat = flats_[f];
            if (flat.whole != no_buffer) continue;
            const bool casts = flat.stored != flat.gathered_as;
            if (!sharded() && !casts && !on_host()) continue;
            if (training_.fsdp.limit_all_gathers.value_or(true)) free_given_up(outstanding_frees - 1);
            BufferId source = flat.shard;
            std::vector<BufferId> copies;
            if (on_host() && sharded()) {
                source =
                    builder_.allocate(buffer(BufferRole::gathered_parameters, Category::communication_buffers,
                                             training_.parameter_dtype, flat, shard_of(flat)),
                                      Stream::gather);
                copies.push_back(source);
            }
            if (casts && sharded()) {
                const BufferId narrow =
                    builder_.allocate(buffer(BufferRole::gathered_parameters, Category::communication_buffers,
                                             compute_, flat, shard_of(flat)),
                                      Stream::gather);
                builder_.on_stream(Stream::gather,
                                   Accumulate{.from = {source}, .to = {narrow}, .unit = flat.unit});
                source = narrow;
                copies.push_back(narrow);
            }
            flat.whole = builder_.allocate(
                buffer(BufferRole::gathered_parameters, Category::gathered_parameters, flat.gathered_as.dtype,
                       flat, flat.gathered_as.elements(flat.padded)),
                Stream::gather);
            if (sharded())
                flat.gathered = {builder_.on_stream(
                    Stream::gather, Collective{.kind = CollectiveKind::all_gather,
                                               .group = GroupKind::shard_group,
                                               .send = {source},
                                               .receive = {flat.whole},
                                               .dtype = flat.gathered_as.dtype,
                                               .elements = flat.gathered_as.elements(flat.padded),
                                               .unit = flat.unit})};
            else
                flat.gathered = {builder_.on_stream(
                    Stream::gather, Accumulate{.from = {source}, .to = {flat.whole}, .unit = flat.unit})};
            for (const BufferId copy : copies) given_up_.push_back({copy, flat.gathered});
        }
    }

    std::vector<OperationId> gather_events(const std::vector<UnitIndex>& units) const {
        std::vector<OperationId> events;
        for (const UnitIndex u : units)
            for (const std::size_t f : flats_of(u))
                events.insert(events.end(), flats_[f].gathered.begin(), flats_[f].gathered.end());
        return events;
    }

    /// The compute stream may still read the parameters: the block is free for others once it has passed.
    void reshard(UnitIndex u) {
        for (const std::size_t f : flats_of(u)) {
            FlatParameter& flat = flats_[f];
            if (flat.whole == no_buffer) continue;
            given_up_.push_back({flat.whole, builder_.last(Stream::compute)});
            flat.whole = no_buffer;
            flat.gathered.clear();
        }
    }

    void free_given_up(std::size_t keep) {
        while (given_up_.size() > keep) {
            builder_.free(given_up_.front().buffer, given_up_.front().after);
            given_up_.pop_front();
        }
    }

    // --- forward and backward

    void forward(ActivationWalk& walk, const ActivationWalk::Hooks& hooks) {
        unshard(0);
        for (std::uint32_t b = 0; b < model_.blocks.size(); ++b) {
            const std::vector<UnitIndex> units = units_of(b);
            for (const UnitIndex u : units) unshard(u);
            walk.forward(b, hooks, gather_events(units));
            for (const UnitIndex u : units)
                if (training_.zero_stage == 3 && !is_root(u)) reshard(u);
        }
    }

    void backward(ActivationWalk& walk, const ActivationWalk::Hooks& hooks) {
        const std::string prefetch = training_.fsdp.backward_prefetch.value_or("pre");
        for (auto b = static_cast<std::uint32_t>(model_.blocks.size()); b-- > 0;) {
            const std::vector<UnitIndex> units = units_of(b);
            for (const UnitIndex u : units) unshard(u);
            std::vector<OperationId> events = gather_events(units);
            if (b > 0 && prefetch == "pre")
                for (const UnitIndex u : units_of(b - 1)) unshard(u);
            walk.backward(b, hooks, std::move(events), false);
            const UnitIndex own = units_.unit_of_block[b];
            for (const UnitIndex u : units)
                if (u != own && !is_root(u)) reshard(u);
            if (is_root(own)) continue;
            make_flat_gradients(own);
            reshard(own);
            if (b > 0 && prefetch == "post")
                for (const UnitIndex u : units_of(b - 1)) unshard(u);
            reduce(own);
        }
        make_flat_gradients(0);
        reshard(0);
        reduce(0);
        finish_reduction();
    }

    BufferId gradient(std::uint32_t parameter) {
        if (!model_.parameters[parameter].trainable) return no_buffer;
        const FlatParameter& flat = flats_[flat_of_[parameter]];
        const BufferId fresh = builder_.allocate(buffer(BufferRole::gradients, Category::gradients, compute_,
                                                        flat, model_.parameters[parameter].numel));
        if (gradients_[parameter] == no_buffer)
            gradients_[parameter] = fresh;
        else
            second_contributions_.push_back({fresh, gradients_[parameter]});
        return fresh;
    }

    void add_second_contributions() {
        for (const auto& [from, to] : second_contributions_) {
            builder_.on_stream(Stream::compute, Accumulate{.from = {from}, .to = {to}, .always_add = true});
            builder_.free(from);
        }
        second_contributions_.clear();
    }

    /// The parameters are views into the flat one: autograd joins their gradients into a flat gradient.
    void make_flat_gradients(UnitIndex u) {
        for (const std::size_t f : flats_of(u)) {
            const FlatParameter& flat = flats_[f];
            if (!flat.trainable) continue;
            const BufferId joined = builder_.allocate(
                buffer(BufferRole::gradients, Category::gradients, compute_, flat, flat.padded));
            for (const PlacedParameter& placed : flat.parameters) {
                BufferId& part = gradients_[placed.parameter];
                if (part == no_buffer) continue;
                builder_.on_stream(Stream::compute,
                                   Accumulate{.from = {part}, .to = {joined}, .unit = flat.unit});
            }
            for (const PlacedParameter& placed : flat.parameters) {
                if (gradients_[placed.parameter] != no_buffer) builder_.free(gradients_[placed.parameter]);
                gradients_[placed.parameter] = no_buffer;
            }
            joined_.push_back({f, joined});
        }
    }

    void reduce(UnitIndex) {
        if (joined_.empty()) return;
        free_reduced(before_last_);
        before_last_ = std::exchange(last_reduced_, {});
        for (const auto& [f, joined] : joined_) reduce_flat(flats_[f], joined);
        joined_.clear();
    }

    /// Cast to the dtype of the reduction, reduced, and cast to the parameter's. The operands are given up at
    /// once, but their memory is free when the collective has ended.
    void reduce_flat(FlatParameter& flat, BufferId joined) {
        BufferId input = joined;
        std::vector<OperationId> waits = builder_.last(Stream::compute);
        last_reduced_.buffers.push_back(joined);
        if (training_.reduce_dtype != compute_) {
            input = builder_.allocate(buffer(BufferRole::gradient_bucket, Category::communication_buffers,
                                             training_.reduce_dtype, flat, flat.padded),
                                      Stream::reduce);
            builder_.on_stream(Stream::reduce, Accumulate{.from = {joined}, .to = {input}, .unit = flat.unit},
                               waits);
            last_reduced_.buffers.push_back(input);
            waits.clear();
        }
        BufferId output = input;
        if (sharded()) {
            output = builder_.allocate(buffer(BufferRole::gradients, Category::gradients,
                                              training_.reduce_dtype, flat, shard_of(flat)),
                                       Stream::reduce);
            builder_.on_stream(Stream::reduce,
                               Collective{.kind = CollectiveKind::reduce_scatter,
                                          .group = GroupKind::shard_group,
                                          .send = {input},
                                          .receive = {output},
                                          .dtype = training_.reduce_dtype,
                                          .elements = flat.padded,
                                          .unit = flat.unit},
                               waits);
            waits.clear();
        }
        if (!sharded() || replicas_ > 1)
            builder_.on_stream(Stream::reduce,
                               Collective{.kind = CollectiveKind::all_reduce,
                                          .group = sharded() ? GroupKind::replica_group : GroupKind::world,
                                          .send = {output},
                                          .receive = {output},
                                          .dtype = training_.reduce_dtype,
                                          .elements = shard_of(flat),
                                          .unit = flat.unit},
                               waits);
        keep_gradient(flat, output);
        last_reduced_.after = builder_.last(Stream::reduce);
    }

    void keep_gradient(FlatParameter& flat, BufferId output) {
        const auto is_input = [&] {
            return std::find(last_reduced_.buffers.begin(), last_reduced_.buffers.end(), output) !=
                   last_reduced_.buffers.end();
        };
        if (on_host()) {
            if (!is_input()) last_reduced_.buffers.push_back(output);
            return;
        }
        const bool same = training_.reduce_dtype == training_.gradient_dtype;
        if (same && !accumulates()) {
            flat.gradient = output;
            if (is_input())
                last_reduced_.buffers.erase(
                    std::find(last_reduced_.buffers.begin(), last_reduced_.buffers.end(), output));
            return;
        }
        if (!accumulates())
            flat.gradient = builder_.allocate(buffer(BufferRole::gradients, Category::gradients,
                                                     training_.gradient_dtype, flat, shard_of(flat)),
                                              Stream::reduce);
        builder_.on_stream(Stream::reduce,
                           Accumulate{.from = {output}, .to = {flat.gradient}, .unit = flat.unit});
        if (!is_input()) last_reduced_.buffers.push_back(output);
    }

    /// The host runs as far ahead as the rate limiter lets it, two units: so long is a reduction's memory
    /// taken, as the streams that use it are recorded.
    void free_reduced(Reduced& reduced) {
        for (const BufferId id : reduced.buffers) builder_.free(id, reduced.after);
        reduced = {};
    }
    void finish_reduction() {
        free_reduced(before_last_);
        free_reduced(last_reduced_);
    }

    void step() {
        builder_.wait_for_all();
        step_position_ = builder_.next();
        std::size_t next = 0;
        for (const FlatParameter& flat : flats_)
            if (flat.trainable) optimizer_.parameters()[next++].gradient = flat.gradient;
        optimizer_.step();
        if (accumulates()) return;
        for (FlatParameter& flat : flats_) {
            if (flat.gradient != no_buffer) builder_.free(flat.gradient);
            flat.gradient = no_buffer;
        }
    }

    struct GivenUp {
        BufferId buffer;
        std::vector<OperationId> after;
    };

    const ModelSpec& model_;
    const TrainingConfig& training_;
    const ClusterSpec& cluster_;
    const TorchUnits& units_;
    std::uint64_t ranks_, replicas_;
    DType compute_;
    StepProgram program_;
    ProgramBuilder builder_;
    TorchOptimizer optimizer_;
    std::vector<FlatParameter> flats_;
    std::vector<std::size_t> flat_of_;  ///< by parameter
    std::vector<BufferId> gradients_;   ///< by parameter, while backward runs
    std::vector<std::pair<BufferId, BufferId>> second_contributions_;
    std::vector<std::pair<std::size_t, BufferId>> joined_;
    std::deque<GivenUp> given_up_;
    BufferId workspace_ = no_buffer;
    Reduced last_reduced_, before_last_;
    OperationId step_position_ = 0;
};

}  // namespace

EngineOutput fsdp1_engine(const Scenario& whole) {
    check_torch(whole);
    const Scenario scenario = rank_scenario(whole);
    const TrainingConfig& training = scenario.training;
    const std::uint64_t ranks = training.shard_group;
    const TorchUnits units = torch_units(scenario.model, training.fsdp.wrap.value_or("layer"));
    EngineOutput output{.rule_set = "fsdp1 (PyTorch 2.6)",
                        .layout = {.shard_group = ranks, .units = {}},
                        .allocator = AllocatorKind::caching};
    output.constants.push_back(cublas_workspace_constant(whole.cluster));
    std::vector<FlatParameter> flats;
    for (std::uint32_t u = 0; u < units.units.size(); ++u) {
        UnitLayout entry{.name = units.units[u].name, .block = 0, .parameters = {}, .also_gathers = {}};
        struct Kind {
            bool trainable, packed;
        };
        for (const Kind kind : {Kind{false, false}, Kind{false, true}, Kind{true, false}}) {
            FlatParameter flat = flatten(scenario, u, units.units[u].parameters, kind.trainable, kind.packed);
            if (flat.parameters.empty()) continue;
            for (const PlacedParameter& placed : flat.parameters)
                entry.parameters.push_back({placed.parameter, entry.padded_numel + placed.offset});
            entry.numel += flat.numel;
            entry.padded_numel += flat.padded;
            flats.push_back(std::move(flat));
        }
        output.layout.units.push_back(std::move(entry));
    }
    output.communicators =
        1 + (ranks > 1 && ranks < training.data_parallel * training.context_parallel ? 1 : 0);
    Fsdp1Program program(scenario, units, std::move(flats));
    output.programs.push_back(program.build());
    output.host.push_back(program.host());
    output.program_ranks.push_back({{0, scenario.world_size() - 1}});
    add_rank_models(output, whole, scenario);
    return output;
}

}  // namespace zeroplan
