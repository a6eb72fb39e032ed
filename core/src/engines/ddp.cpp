#include <algorithm>
#include <map>

#include "engines/activation_walk.hpp"
#include "engines/engine.hpp"
#include "engines/parameter_storage.hpp"
#include "engines/torch_checks.hpp"
#include "engines/torch_parallel.hpp"
#include "engines/torch_step.hpp"
#include "engines/torch_units.hpp"
#include "engines/zero_redundancy.hpp"
#include "zeroplan/units.hpp"

namespace zeroplan {
namespace {

// torch/csrc/distributed/c10d/reducer.hpp: the first bucket is small, so that reduction starts early.
constexpr std::uint64_t first_bucket_bytes = 1ULL << 20, bucket_bytes = 25ULL << 20;

/// Gradients that are all-reduced together: parameters in reverse order, until the limit is reached.
struct Bucket {
    std::vector<std::uint32_t> parameters;
    std::uint64_t elements = 0;
    BufferId buffer = no_buffer;
    std::size_t missing = 0;  ///< gradients that this backward hasn't produced yet
};

std::vector<Bucket> buckets_of(const ModelSpec& model, std::uint64_t element_bytes) {
    std::vector<Bucket> buckets;
    std::uint64_t limit = first_bucket_bytes;
    bool full = true;
    for (auto p = static_cast<std::uint32_t>(model.parameters.size()); p-- > 0;) {
        const Parameter& parameter = model.parameters[p];
        if (!parameter.trainable || parameter.shared_with) continue;
        if (full) {
            if (!buckets.empty()) limit = bucket_bytes;
            buckets.emplace_back();
        }
        buckets.back().parameters.push_back(p);
        buckets.back().elements += parameter.numel;
        full = buckets.back().elements * element_bytes >= limit;
    }
    return buckets;
}

/// Every rank holds all parameters and gradients, each a tensor of its own.
class DdpProgram {
public:
    DdpProgram(const Scenario& scenario, const TorchUnits& units, const std::vector<std::uint64_t>& owners,
               std::uint64_t rank)
        : model_(scenario.model),
          training_(scenario.training),
          cluster_(scenario.cluster),
          units_(units),
          owners_(owners),
          rank_(rank),
          reduces_(scenario.training.engine != EngineKind::single),
          autocast_(uses_autocast(scenario.training)),
          compute_(storage_dtype(scenario.training.compute_dtype)),
          builder_(program_),
          optimizer_(training_, builder_),
          tensors_(model_.parameters.size()),
          uses_(model_.parameters.size(), 1) {}

    StepProgram build() {
        for (const Parameter& parameter : model_.parameters)
            if (parameter.shared_with) ++uses_[*parameter.shared_with];
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

private:
    struct Tensors {
        BufferId values = no_buffer, gradient = no_buffer;
        BufferId cast = no_buffer;  ///< autocast's copy
        std::uint32_t unit = 0, position = 0;
        std::uint32_t contributions = 0;  ///< of this backward
        std::size_t bucket = 0;
    };

    bool accumulates() const { return training_.gradient_accumulation_steps > 1; }
    bool steps_in_backward() const {
        return training_.optimizer_implementation == OptimizerImplementation::in_backward && !reduces_;
    }
    bool is_trained(std::uint32_t p) const { return model_.parameters[p].trainable; }

    Buffer tensor(BufferRole role, Category category, DType dtype, std::uint32_t p) const {
        return {.role = role,
                .category = category,
                .dtype = dtype,
                .owner = tensors_[p].unit,
                .tensor = tensors_[p].position,
                .elements = model_.parameters[p].numel};
    }

    void build_load() {
        program_.load = {"load", 1, {}};
        builder_.begin(program_.load);
        for (std::uint32_t u = 0; u < units_.units.size(); ++u) {
            const auto& parameters = units_.units[u].parameters;
            for (std::uint32_t i = 0; i < parameters.size(); ++i) {
                tensors_[parameters[i]].unit = u;
                tensors_[parameters[i]].position = i + 1;
            }
        }
        for (std::uint32_t p = 0; p < model_.parameters.size(); ++p) {
            const Parameter& parameter = model_.parameters[p];
            if (parameter.shared_with) continue;
            const StoredAs as = stored_as(parameter, training_.parameter_dtype);
            Buffer values = tensor(BufferRole::parameters, Category::parameters, as.dtype, p);
            values.elements = as.elements(parameter.numel);
            tensors_[p].values = builder_.allocate(values);
            if (const std::uint64_t bytes = statistics_bytes(parameter); bytes > 0) {
                values.elements = bytes;
                builder_.allocate(values);
            }
            const bool owned = owners_.empty() || owners_[p] == rank_;
            if (is_trained(p) && owned)
                optimizer_.add({.parameter = p,
                                .unit = tensors_[p].unit,
                                .position = tensors_[p].position,
                                .elements = parameter.numel,
                                .shape = parameter.shape,
                                .values = tensors_[p].values});
        }
        workspace_ = allocate_cublas_workspaces(builder_, cluster_.gpu.compute_capability);
    }

    /// The reducer's buckets are as large as the gradients, and stay. Gradients that are summed over
    /// micro-batches live between them.
    void build_init() {
        program_.init = {"init", 1, {}};
        builder_.begin(program_.init);
        if (reduces_) {
            buckets_ = buckets_of(model_, bytes_per_element(training_.gradient_dtype));
            for (std::size_t b = 0; b < buckets_.size(); ++b) {
                for (const std::uint32_t p : buckets_[b].parameters) tensors_[p].bucket = b;
                buckets_[b].buffer =
                    builder_.allocate({.role = BufferRole::gradient_bucket,
                                       .category = Category::communication_buffers,
                                       .dtype = training_.gradient_dtype,
                                       .owner = tensors_[buckets_[b].parameters.front()].unit,
                                       .elements = buckets_[b].elements});
            }
        }
        if (!accumulates() || steps_in_backward()) return;
        for (std::uint32_t p = 0; p < model_.parameters.size(); ++p)
            if (is_trained(p) && !model_.parameters[p].shared_with)
                tensors_[p].gradient = builder_.allocate(
                    tensor(BufferRole::gradients, Category::gradients, training_.gradient_dtype, p));
    }

    void build_micro_batch(Section section, bool last) {
        program_.step.push_back(std::move(section));
        builder_.begin(program_.step.back());
        last_ = last;
        for (Tensors& tensors : tensors_) tensors.contributions = 0;
        for (Bucket& bucket : buckets_) bucket.missing = bucket.parameters.size();
        ActivationWalk walk(model_, training_, builder_, parameter_owners(model_), workspace_,
                            ActivationWalk::GradientSums::fresh);
        const ActivationWalk::Hooks hooks{
            .parameters = [this](std::uint32_t p) { return values(p); },
            .gradients = [this](std::uint32_t p) { return gradient(p); },
            .accumulate = [](std::uint32_t) { return false; },
            .before = [this](ComputePhase phase, std::uint32_t block,
                             const Operator& op) { cast_weights(phase, block, op); },
            .after = [this](ComputePhase phase, std::uint32_t block,
                            const Operator& op) { after(phase, block, op); }};
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

    // --- autocast's weights

    /// Under autocast a product's weight is cast once, at its first use; forward keeps all casts until it
    /// leaves autocast, and autograd those of layers that don't run again (ATen/autocast_mode.cpp).
    bool takes_cast(const Operator& op) const {
        return autocast_ && op.kind == OperatorKind::linear && !op.parameters.empty();
    }

    void cast_weights(ComputePhase phase, std::uint32_t block, const Operator& op) {
        if (!takes_cast(op) || phase == ComputePhase::backward) return;
        for (const std::uint32_t position : op.parameters) {
            const std::uint32_t p = owner_of(model_, model_.blocks[block].parameters[position]);
            if (tensors_[p].cast != no_buffer) continue;
            tensors_[p].cast = builder_.allocate(
                tensor(BufferRole::gathered_parameters, Category::gathered_parameters, compute_, p));
            builder_.on_stream(
                Stream::compute,
                Accumulate{.from = {tensors_[p].values}, .to = {tensors_[p].cast}, .unit = tensors_[p].unit});
        }
    }

    void drop_cast(std::uint32_t p) {
        if (tensors_[p].cast == no_buffer) return;
        builder_.free(tensors_[p].cast);
        tensors_[p].cast = no_buffer;
    }

    void drop_casts(std::uint32_t block) {
        for (const std::uint32_t parameter : model_.blocks[block].parameters) {
            const std::uint32_t p = owner_of(model_, parameter);
            if (tensors_[p].contributions >= uses_[p] || uses_[p] == 1) drop_cast(p);
        }
    }

    void drop_unsaved_casts() {
        if (training_.recompute != Recompute::full) return;
        for (std::uint32_t b = 0; b < model_.blocks.size(); ++b)
            if (model_.block_kinds[model_.blocks[b].kind].is_layer) drop_casts(b);
    }

    BufferId values(std::uint32_t p) const {
        return tensors_[p].cast != no_buffer ? tensors_[p].cast : tensors_[p].values;
    }

    // --- gradients

    /// Autograd makes a gradient in the dtype of the product, casts it to the parameter's under autocast, and
    /// keeps it as it is unless there is one to add it to.
    BufferId gradient(std::uint32_t p) {
        if (!is_trained(p)) return no_buffer;
        const bool cast = tensors_[p].cast != no_buffer;
        const DType dtype = cast ? compute_ : training_.parameter_dtype;
        const BufferId fresh =
            builder_.allocate(tensor(BufferRole::gradients, Category::gradients, dtype, p));
        fresh_.push_back({p, fresh});
        return fresh;
    }

    void after(ComputePhase phase, std::uint32_t, const Operator&) {
        if (phase != ComputePhase::backward) return;
        for (const Fresh& fresh : fresh_) keep(fresh);
        fresh_.clear();
    }

    struct Fresh {
        std::uint32_t parameter;
        BufferId buffer;
    };

    void keep(const Fresh& fresh) {
        Tensors& tensors = tensors_[fresh.parameter];
        ++tensors.contributions;
        const bool wrong_dtype = builder_.buffer(fresh.buffer).dtype != training_.gradient_dtype &&
                                 bytes_per_element(builder_.buffer(fresh.buffer).dtype) !=
                                     bytes_per_element(training_.gradient_dtype);
        if (tensors.gradient == no_buffer && !wrong_dtype) {
            tensors.gradient = fresh.buffer;
        } else {
            if (tensors.gradient == no_buffer)
                tensors.gradient = builder_.allocate(tensor(BufferRole::gradients, Category::gradients,
                                                            training_.gradient_dtype, fresh.parameter));
            builder_.on_stream(Stream::compute, Accumulate{.from = {fresh.buffer},
                                                           .to = {tensors.gradient},
                                                           .unit = tensors.unit,
                                                           .always_add = tensors.contributions > 1});
            builder_.free(fresh.buffer);
        }
        if (tensors.contributions < uses_[fresh.parameter]) return;
        if (steps_in_backward()) return step_in_backward(fresh.parameter);
        if (reduces_ && last_) reduce(buckets_[tensors.bucket]);
    }

    void step_in_backward(std::uint32_t p) {
        if (step_position_ == 0) step_position_ = builder_.next();
        for (OwnedParameter& parameter : optimizer_.parameters())
            if (parameter.parameter == p) {
                parameter.gradient = tensors_[p].gradient;
                optimizer_.step_one(parameter);
            }
        builder_.free(tensors_[p].gradient);
        tensors_[p].gradient = no_buffer;
    }

    /// A bucket whose gradients are all there is reduced, and copied back to them.
    void reduce(Bucket& bucket) {
        if (--bucket.missing > 0) return;
        for (const std::uint32_t p : bucket.parameters)
            builder_.on_stream(
                Stream::compute,
                Accumulate{.from = {tensors_[p].gradient}, .to = {bucket.buffer}, .unit = tensors_[p].unit});
        builder_.on_stream(Stream::reduce,
                           Collective{.kind = CollectiveKind::all_reduce,
                                      .group = GroupKind::world,
                                      .send = {bucket.buffer},
                                      .receive = {bucket.buffer},
                                      .dtype = training_.gradient_dtype,
                                      .elements = bucket.elements,
                                      .unit = builder_.buffer(bucket.buffer).owner},
                           builder_.last(Stream::compute));
    }

    void step() {
        builder_.wait_for_all();
        if (!steps_in_backward()) {
            for (const Bucket& bucket : buckets_)
                for (const std::uint32_t p : bucket.parameters)
                    builder_.on_stream(Stream::compute, Accumulate{.from = {bucket.buffer},
                                                                   .to = {tensors_[p].gradient},
                                                                   .unit = tensors_[p].unit});
            step_position_ = builder_.next();
            for (OwnedParameter& parameter : optimizer_.parameters())
                parameter.gradient = tensors_[parameter.parameter].gradient;
            optimizer_.step();
        }
        if (!owners_.empty()) broadcast_parameters();
        if (accumulates()) return;
        for (Tensors& tensors : tensors_) {
            if (tensors.gradient != no_buffer) builder_.free(tensors.gradient);
            tensors.gradient = no_buffer;
        }
    }

    /// ZeroRedundancyOptimizer: every parameter goes from its owner to all.
    void broadcast_parameters() {
        for (std::uint32_t p = 0; p < model_.parameters.size(); ++p) {
            if (!is_trained(p) || model_.parameters[p].shared_with) continue;
            builder_.on_stream(Stream::gather,
                               Collective{.kind = CollectiveKind::broadcast,
                                          .group = GroupKind::world,
                                          .send = {tensors_[p].values},
                                          .receive = {tensors_[p].values},
                                          .dtype = training_.parameter_dtype,
                                          .elements = model_.parameters[p].numel,
                                          .unit = tensors_[p].unit},
                               builder_.last(Stream::compute));
        }
    }

    const ModelSpec& model_;
    const TrainingConfig& training_;
    const ClusterSpec& cluster_;
    const TorchUnits& units_;
    const std::vector<std::uint64_t>& owners_;  ///< by parameter; empty: this rank steps all of them
    std::uint64_t rank_;
    bool reduces_, autocast_;
    DType compute_;
    StepProgram program_;
    ProgramBuilder builder_;
    TorchOptimizer optimizer_;
    std::vector<Tensors> tensors_;     ///< by parameter
    std::vector<std::uint32_t> uses_;  ///< by parameter: contributions to its gradient
    std::vector<Bucket> buckets_;
    std::vector<Fresh> fresh_;
    BufferId workspace_ = no_buffer;
    OperationId step_position_ = 0;
    bool last_ = false;
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

/// Ranks that own the same sizes do the same to the byte.
std::vector<std::vector<std::uint64_t>> ranks_by_sizes(const ModelSpec& model,
                                                       const std::vector<std::uint64_t>& owners,
                                                       std::uint64_t ranks) {
    std::vector<std::vector<std::uint64_t>> sizes(ranks);
    for (std::size_t p = 0; p < owners.size(); ++p)
        if (owners[p] < ranks && !model.parameters[p].shared_with)
            sizes[owners[p]].push_back(model.parameters[p].numel);
    std::map<std::vector<std::uint64_t>, std::vector<std::uint64_t>> groups;
    for (std::uint64_t r = 0; r < ranks; ++r) {
        std::sort(sizes[r].begin(), sizes[r].end());
        groups[std::move(sizes[r])].push_back(r);
    }
    std::vector<std::vector<std::uint64_t>> result;
    for (auto& [size, members] : groups) result.push_back(std::move(members));
    std::sort(result.begin(), result.end());
    return result;
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
    output.constants.push_back(cublas_workspace_constant(whole.cluster));
    const std::uint64_t ranks = scenario.world_size();
    const std::vector<std::uint64_t> nobody;
    if (scenario.training.engine != EngineKind::ddp_zero_optimizer) {
        output.programs.push_back(DdpProgram(scenario, units, nobody, 0).build());
        output.program_ranks.push_back({{0, ranks - 1}});
        add_rank_models(output, whole, scenario);
        return output;
    }
    const std::vector<std::uint64_t> owners = zero_redundancy_owners(scenario.model, ranks);
    for (const auto& members : ranks_by_sizes(scenario.model, owners, ranks)) {
        output.programs.push_back(DdpProgram(scenario, units, owners, members.front()).build());
        output.program_ranks.push_back(ranges_of(members));
    }
    add_rank_models(output, whole, scenario);
    return output;
}

}  // namespace zeroplan
