#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "engines/activation_walk.hpp"
#include "engines/engine.hpp"
#include "engines/fsdp2_layout.hpp"
#include "engines/parameter_storage.hpp"
#include "engines/pipeline_schedule.hpp"
#include "engines/torch_checks.hpp"
#include "engines/torch_host.hpp"
#include "engines/torch_parallel.hpp"
#include "engines/torch_step.hpp"
#include "engines/torch_units.hpp"
#include "zeroplan/units.hpp"

namespace zeroplan {
namespace {

// Source of the rules: torch/distributed/fsdp/_fully_shard (PyTorch 2.6): _fsdp_param.py,
// _fsdp_collectives.py, _fsdp_param_group.py, _fsdp_state.py.

/// One unit's buffers.
struct UnitState {
    std::vector<BufferId> shards;       ///< by position; no_buffer on the host
    std::vector<BufferId> unsharded;    ///< by position, while gathered
    std::vector<BufferId> gradients;    ///< by position, while backward runs
    std::vector<BufferId> summed;       ///< by position: unsharded sums over micro-batches
    BufferId post_forward = no_buffer;  ///< the smaller group's shard between forward and backward
    BufferId gathering = no_buffer;     ///< the all-gather's buffer, until it is copied out
    std::vector<OperationId> gathered;
    BufferId sharded_gradient = no_buffer;
    std::uint64_t padded = 0;  ///< elements of one rank's shard of all parameters
    std::uint64_t trained_padded = 0;
    bool is_unsharded = false;
};

class Fsdp2Program {
public:
    /// `stage`: its number, and what it holds, under pipeline parallelism.
    Fsdp2Program(const Scenario& scenario, const TorchUnits& units, std::uint64_t rank,
                 const TorchStage* stage = nullptr, std::uint64_t stage_number = 0)
        : stage_(stage),
          stage_number_(stage_number),
          model_(scenario.model),
          training_(scenario.training),
          cluster_(scenario.cluster),
          units_(units),
          ranks_(scenario.training.shard_group),
          rank_(rank),
          replicas_(scenario.training.data_parallel * scenario.training.context_parallel / ranks_),
          compute_(storage_dtype(scenario.training.compute_dtype)),
          builder_(program_),
          optimizer_(training_, builder_),
          state_(units.units.size()),
          position_(model_.parameters.size(), 0) {}

    StepProgram build() {
        build_load();
        build_init();
        const std::uint64_t micro_batches = training_.gradient_accumulation_steps;
        program_.step.reserve(2);
        if (pipelined()) {
            build_pipeline_step();
        } else {
            if (micro_batches > 1) build_micro_batch({"micro_batch", micro_batches - 1, {}}, false);
            build_micro_batch({"last_micro_batch_and_step", 1, {}}, true);
        }
        program_.first_step = first_step_of(program_.step, optimizer_.states(), step_position_);
        program_.save = {"save", 1, {}};
        return std::move(program_);
    }

    HostPhases host() const {
        std::vector<OffloadedShard> shards;
        for (const TorchUnit& unit : units_.units)
            for (const std::uint32_t p : unit.parameters) {
                const Parameter& parameter = model_.parameters[p];
                const std::uint64_t padded = row_shard(parameter, ranks_, rank_).padded;
                const StoredAs as = stored_as(parameter, training_.parameter_dtype);
                shards.push_back(
                    {as.elements(padded) * bytes_per_element(as.dtype),
                     parameter.trainable ? padded * bytes_per_element(training_.gradient_dtype) : 0});
            }
        return fsdp_host(training_, shards, optimizer_.host_bytes());
    }

private:
    using UnitIndex = std::uint32_t;

    bool on_host() const { return training_.offload_parameters != OffloadTarget::none; }
    bool pipelined() const { return stage_ != nullptr; }
    /// Gradients are summed before they are reduced: a pipeline reduces after a stage's last micro-batch.
    bool sums_unsharded() const {
        return training_.gradient_accumulation_steps > 1 &&
               (pipelined() || training_.fsdp.gradient_sync == GradientSync::last);
    }
    /// Reduced gradients are summed.
    bool accumulates() const { return training_.gradient_accumulation_steps > 1 && !sums_unsharded(); }
    const TorchUnit& unit(UnitIndex u) const { return units_.units[u]; }
    UnitIndex unit_count() const { return static_cast<UnitIndex>(state_.size()); }
    bool empty(UnitIndex u) const { return unit(u).parameters.empty(); }
    bool trained(UnitIndex u) const { return state_[u].trained_padded > 0; }
    /// The last unit that runs is left gathered, as trainers ask for: backward would gather it again at once.
    bool reshards_after_forward(UnitIndex u) const {
        return training_.zero_stage == 3 && !unit(u).is_root && u + 1 != unit_count();
    }
    std::uint64_t second_group() const {
        const auto asked = training_.fsdp.reshard_after_forward.value_or(1);
        return asked > 1 ? static_cast<std::uint64_t>(asked) : 0;
    }
    /// With fp8 all-gather the weights of a layer's linears travel and stay in fp8; the output layer's don't.
    /// Quantised weights travel as they are stored.
    StoredAs gathered_as(UnitIndex u, std::uint32_t parameter) const {
        const Parameter& p = model_.parameters[parameter];
        if (p.storage == ParameterStorage::nf4) return stored_as(p, compute_);
        return {gathers_fp8_ && p.shape.size() == 2 && !unit(u).is_root ? DType::fp8 : compute_};
    }
    /// Bytes that one rank gives to the gather of a unit, and whether they are of several dtypes.
    std::uint64_t gathered_bytes(UnitIndex u, bool& bytewise) const {
        std::uint64_t bytes = 0;
        bytewise = false;
        for (const std::uint32_t p : unit(u).parameters) {
            const StoredAs as = gathered_as(u, p);
            bytes += as.elements(row_shard(model_.parameters[p], ranks_, rank_).padded) *
                     bytes_per_element(as.dtype);
            bytewise = bytewise || as.dtype != compute_;
        }
        return bytes;
    }
    Buffer buffer(BufferRole role, Category category, DType dtype, UnitIndex u, std::uint64_t elements,
                  std::size_t position = 0) const {
        return {.role = role,
                .category = category,
                .dtype = dtype,
                .owner = u,
                .tensor = static_cast<std::uint32_t>(position),
                .elements = elements};
    }

    void build_load() {
        program_.load = {"load", 1, {}};
        builder_.begin(program_.load);
        gathers_fp8_ = training_.fp8_json.find("\"all_gather\":true") != std::string::npos;
        for (UnitIndex u = 0; u < unit_count(); ++u) {
            for (std::size_t i = 0; i < unit(u).parameters.size(); ++i) {
                const std::uint32_t p = unit(u).parameters[i];
                position_[p] = static_cast<std::uint32_t>(i);
                const Parameter& parameter = model_.parameters[p];
                RowShard shard = row_shard(parameter, ranks_, rank_);
                BufferId values = no_buffer;
                const StoredAs as = stored_as(parameter, training_.parameter_dtype);
                if (!on_host())
                    values = builder_.allocate(buffer(BufferRole::parameters, Category::parameters, as.dtype,
                                                      u, as.elements(shard.padded), i + 1));
                if (const std::uint64_t bytes = statistics_bytes(parameter) / ranks_; bytes > 0)
                    builder_.allocate(
                        buffer(BufferRole::parameters, Category::parameters, DType::uint8, u, bytes, i + 1));
                state_[u].shards.push_back(values);
                state_[u].padded += shard.padded;
                if (!parameter.trainable) continue;
                state_[u].trained_padded += shard.padded;
                optimizer_.add({.parameter = p,
                                .unit = u,
                                .position = static_cast<std::uint32_t>(i + 1),
                                .elements = shard.owned,
                                .shape = std::move(shard.shape),
                                .values = values});
            }
        }
        const std::uint64_t workspace = cublas_workspace_bytes(cluster_.gpu.compute_capability);
        for (int thread = 0; thread < 2; ++thread)
            workspace_ = builder_.allocate({.role = BufferRole::workspace,
                                            .category = Category::temporaries,
                                            .dtype = DType::uint8,
                                            .elements = workspace});
    }

    /// Gradients that are summed over micro-batches live between them.
    void build_init() {
        program_.init = {"init", 1, {}};
        builder_.begin(program_.init);
        if (pipelined()) allocate_received();
        if (sums_unsharded() && !pipelined())
            for (UnitIndex u = 0; u < unit_count(); ++u) allocate_sums(u);
        if (!accumulates() || on_host()) return;
        for (UnitIndex u = 0; u < unit_count(); ++u)
            if (trained(u))
                state_[u].sharded_gradient =
                    builder_.allocate(buffer(BufferRole::gradients, Category::gradients,
                                             training_.gradient_dtype, u, state_[u].trained_padded),
                                      Stream::reduce);
    }

    void build_micro_batch(Section section, bool last) {
        program_.step.push_back(std::move(section));
        builder_.begin(program_.step.back());
        std::vector<std::uint32_t> every_parameter(model_.parameters.size());
        for (std::uint32_t p = 0; p < every_parameter.size(); ++p) every_parameter[p] = owner_of(model_, p);
        ActivationWalk walk(model_, training_, builder_, std::move(every_parameter), workspace_,
                            ActivationWalk::GradientSums::fresh);
        const ActivationWalk::Hooks hooks = walk_hooks();
        synchronises_ = last || !sums_unsharded();
        walk.begin_micro_batch();
        forward(walk, hooks);
        backward(walk, hooks);
        if (last) step();
        builder_.wait_for_all();
    }

    // --- pipeline: torch/distributed/pipelining/stage.py

    struct Received {
        BufferId input = no_buffer, gradient = no_buffer;
    };
    struct Flight {
        std::unique_ptr<ActivationWalk> walk;
    };

    Buffer tensor_of(BufferRole role, std::uint32_t block, std::uint32_t tensor) const {
        const TensorSpec& spec = model_.block_kinds[model_.blocks[block].kind].tensors[tensor];
        return {.role = role,
                .category = Category::communication_buffers,
                .dtype = resolve(spec.dtype, compute_),
                .owner = block,
                .tensor = tensor,
                .elements = elements(spec.extent, training_.micro_batch_size, training_.sequence_length)};
    }

    /// Buffers to receive into are made once for every micro-batch, and stay.
    void allocate_received() {
        received_.assign(stage_->chunks.size(), {});
        for (std::size_t c = 0; c < stage_->chunks.size(); ++c) {
            const ChunkBlocks& blocks = stage_->chunks[c];
            for (std::uint64_t m = 0; m < training_.gradient_accumulation_steps; ++m) {
                Received received;
                if (!stage_->parts[c].embedding)
                    received.input = builder_.allocate(tensor_of(BufferRole::activation, blocks.first, 0));
                if (!stage_->parts[c].head)
                    received.gradient = builder_.allocate(
                        tensor_of(BufferRole::activation_gradient, blocks.last,
                                  model_.block_kinds[model_.blocks[blocks.last].kind].output));
                received_[c].push_back(received);
            }
        }
    }

    void build_pipeline_step() {
        program_.step.push_back({"step", 1, {}});
        builder_.begin(program_.step.back());
        const auto micro_batches = static_cast<std::uint32_t>(training_.gradient_accumulation_steps);
        const std::vector<PipelineAction> actions = pipeline_schedule(
            {training_.pipeline_schedule, static_cast<std::uint32_t>(training_.pipeline_parallel),
             static_cast<std::uint32_t>(stage_->chunks.size()), micro_batches},
            static_cast<std::uint32_t>(stage_number_));
        std::map<std::pair<std::uint32_t, std::uint32_t>, Flight> flights;
        const ActivationWalk::Hooks hooks = walk_hooks();
        for (const PipelineAction& action : actions) {
            Flight& flight = flights[{action.chunk, action.micro_batch}];
            if (action.forward) {
                run_forward(flight, action, hooks);
                continue;
            }
            synchronises_ = action.micro_batch + 1 == micro_batches;
            run_backward(flight, action, hooks);
            flight.walk.reset();
        }
        finish_reduction();
        step();
        for (const BufferId output : stage_outputs_) builder_.free(output);
        builder_.wait_for_all();
    }

    /// Messages are asynchronous (isend); a receive is waited for where its tensor is used.
    void transfer(bool send, bool gradients, std::uint64_t lower, std::uint32_t block, std::uint32_t tensor) {
        const Buffer sent = tensor_of(BufferRole::activation, block, tensor);
        const Transfer message{.send = send,
                               .channel = static_cast<std::uint32_t>(2 * lower + (gradients ? 1 : 0)),
                               .dtype = sent.dtype,
                               .elements = sent.elements,
                               .to_next = !gradients};
        if (send)
            builder_.on_stream(Stream::exchange, message, builder_.last(Stream::compute));
        else
            builder_.on_stream(Stream::compute, message);
    }
    /// The chunk's message with the virtual stage before it.
    void transfer_before(const PipelineAction& action, bool send) {
        const std::uint64_t own = action.chunk * training_.pipeline_parallel + stage_number_;
        if (!stage_->parts[action.chunk].embedding)
            transfer(send, send, own - 1, stage_->chunks[action.chunk].first, 0);
    }
    /// The chunk's message with the virtual stage behind it.
    void transfer_behind(const PipelineAction& action, bool send) {
        const std::uint64_t own = action.chunk * training_.pipeline_parallel + stage_number_;
        const std::uint32_t last = stage_->chunks[action.chunk].last;
        if (!stage_->parts[action.chunk].head)
            transfer(send, !send, own, last, model_.block_kinds[model_.blocks[last].kind].output);
    }

    void run_forward(Flight& flight, const PipelineAction& action, const ActivationWalk::Hooks& hooks) {
        const ChunkBlocks& blocks = stage_->chunks[action.chunk];
        std::vector<std::uint32_t> every_parameter(model_.parameters.size());
        for (std::uint32_t p = 0; p < every_parameter.size(); ++p) every_parameter[p] = owner_of(model_, p);
        flight.walk =
            std::make_unique<ActivationWalk>(model_, training_, builder_, std::move(every_parameter),
                                             workspace_, ActivationWalk::GradientSums::fresh);
        transfer_before(action, false);
        flight.walk->begin_chunk(blocks.first, blocks.last,
                                 received_[action.chunk][action.micro_batch].input);
        for (std::uint32_t b = blocks.first; b <= blocks.last; ++b) {
            for (const UnitIndex u : units_of(b)) unshard_for_forward(u);
            flight.walk->forward(b, hooks, {});
            for (const UnitIndex u : units_of(b))
                if (reshards_after_forward(u)) reshard(u, true);
        }
        flush_forward_gather();
        transfer_behind(action, true);
        // A stage keeps the outputs of all micro-batches until the next step; the last one keeps its logits.
        if (flight.walk->output() != no_buffer)
            stage_outputs_.push_back(flight.walk->output());
        else
            keep_logits(blocks.last);
    }

    void keep_logits(std::uint32_t head) {
        for (const Operator& op : model_.block_kinds[model_.blocks[head].kind].operators)
            if (op.kind == OperatorKind::linear) {
                Buffer logits = tensor_of(BufferRole::activation, head, op.outputs.front());
                logits.category = Category::logits;
                stage_outputs_.push_back(builder_.allocate(logits));
            }
    }

    void run_backward(Flight& flight, const PipelineAction& action, const ActivationWalk::Hooks& hooks) {
        const ChunkBlocks& blocks = stage_->chunks[action.chunk];
        const BufferId arrived = received_[action.chunk][action.micro_batch].gradient;
        if (arrived != no_buffer) flight.walk->receive_gradient(arrived);
        transfer_behind(action, false);
        bool uses_root = false;
        for (std::uint32_t b = blocks.last + 1; b-- > blocks.first;) {
            for (const UnitIndex u : units_of(b)) unshard_for_backward(u);
            if (b > blocks.first)
                for (const UnitIndex u : units_of(b - 1)) prefetch(u);
            flight.walk->backward(b, hooks, {}, false);
            const UnitIndex own = units_.unit_of_block[b];
            uses_root = uses_root || unit(own).is_root;
            if (!unit(own).is_root) post_backward(own);
        }
        if (uses_root) post_backward(0);
        transfer_before(action, true);
        if (!stage_->parts[action.chunk].embedding) builder_.free(flight.walk->input_gradient());
    }

    ActivationWalk::Hooks walk_hooks() {
        return {
            .parameters = [this](std::uint32_t p) { return unsharded(p); },
            .gradients = [this](std::uint32_t p) { return gradient(p); },
            .accumulate = [](std::uint32_t) { return false; },
            .after = [this](ComputePhase, std::uint32_t, const Operator&) { add_second_contributions(); }};
    }

    // --- forward

    void forward(ActivationWalk& walk, const ActivationWalk::Hooks& hooks) {
        const auto blocks = static_cast<std::uint32_t>(model_.blocks.size());
        unshard_for_forward(0);
        for (std::uint32_t b = 0; b < blocks; ++b) {
            for (const UnitIndex u : units_of(b)) unshard_for_forward(u);
            if (b + 1 == blocks) flush_forward_gather();
            walk.forward(b, hooks, {});
            for (const UnitIndex u : units_of(b))
                if (reshards_after_forward(u)) reshard(u, true);
        }
    }

    /// Units whose parameters a block reads: its own, and that of a tied weight.
    std::vector<UnitIndex> units_of(std::uint32_t block) const {
        std::vector<UnitIndex> result{units_.unit_of_block[block]};
        for (const std::uint32_t p : model_.blocks[block].parameters) {
            const UnitIndex u = units_.unit_of_parameter[p];
            if (std::find(result.begin(), result.end(), u) == result.end()) result.push_back(u);
        }
        return result;
    }

    /// The previous unit's gather buffer is given up once this unit's gather is issued, so that its copy-in
    /// doesn't have to wait for the previous copy-out.
    void unshard_for_forward(UnitIndex u) {
        if (empty(u) || state_[u].is_unsharded) return;
        all_gather(u);
        flush_forward_gather();
        copy_out(u);
        forward_gather_ = state_[u].gathering;
        forward_gather_copied_ = builder_.last(Stream::compute);
        state_[u].gathering = no_buffer;
    }

    void flush_forward_gather() {
        if (forward_gather_ == no_buffer) return;
        builder_.free(forward_gather_, forward_gather_copied_);
        forward_gather_ = no_buffer;
    }

    /// Every shard is cast to the compute dtype first, where it differs (or copied to the device, where it is
    /// on the host); the copies go once they stand in the gather buffer.
    void all_gather(UnitIndex u) {
        UnitState& state = state_[u];
        std::vector<BufferId> copies;
        for (std::size_t i = 0; i < unit(u).parameters.size(); ++i) {
            const Parameter& parameter = model_.parameters[unit(u).parameters[i]];
            const std::uint64_t elements = row_shard(parameter, ranks_, rank_).padded;
            const StoredAs stored = stored_as(parameter, training_.parameter_dtype),
                           gathered = gathered_as(u, unit(u).parameters[i]);
            const auto copy = [&](const StoredAs& as) {
                copies.push_back(
                    builder_.allocate(buffer(BufferRole::gathered_parameters, Category::communication_buffers,
                                             as.dtype, u, as.elements(elements), i + 1),
                                      Stream::gather));
            };
            if (on_host()) copy(stored);
            if (stored != gathered && state.post_forward == no_buffer) copy(gathered);
        }
        bool bytewise = false;
        const std::uint64_t bytes = gathered_bytes(u, bytewise);
        const DType dtype = bytewise ? DType::uint8 : compute_;
        const std::uint64_t elements = bytes / bytes_per_element(dtype) * ranks_;
        state.gathering = builder_.allocate(
            buffer(BufferRole::gathered_parameters, Category::communication_buffers, dtype, u, elements),
            Stream::gather);
        state.gathered = {builder_.on_stream(Stream::gather, Collective{.kind = CollectiveKind::all_gather,
                                                                        .group = GroupKind::shard_group,
                                                                        .send = {state.gathering, true},
                                                                        .receive = {state.gathering, false},
                                                                        .dtype = dtype,
                                                                        .elements = elements,
                                                                        .unit = u})};
        for (const BufferId copy : copies) builder_.free(copy);
    }

    void copy_out(UnitIndex u) {
        UnitState& state = state_[u];
        for (std::size_t i = 0; i < unit(u).parameters.size(); ++i) {
            const std::uint32_t p = unit(u).parameters[i];
            const StoredAs as = gathered_as(u, p);
            state.unsharded.push_back(builder_.allocate(
                buffer(BufferRole::gathered_parameters, Category::gathered_parameters, as.dtype, u,
                       as.elements(row_shard(model_.parameters[p], ranks_, rank_).padded) * ranks_, i + 1)));
        }
        for (const BufferId parameter : state.unsharded)
            builder_.on_stream(Stream::compute,
                               Accumulate{.from = {state.gathering}, .to = {parameter}, .unit = u},
                               state.gathered);
        if (state.post_forward != no_buffer) {
            builder_.free(state.post_forward, state.gathered);
            state.post_forward = no_buffer;
        }
        state.is_unsharded = true;
    }

    void reshard(UnitIndex u, bool after_forward) {
        UnitState& state = state_[u];
        if (!state.is_unsharded) return;
        if (after_forward && second_group() > 0)
            state.post_forward =
                builder_.allocate(buffer(BufferRole::gathered_parameters, Category::gathered_parameters,
                                         compute_, u, state.padded * ranks_ / second_group()));
        for (const BufferId parameter : state.unsharded) builder_.free(parameter);
        state.unsharded.clear();
        state.is_unsharded = false;
    }

    BufferId unsharded(std::uint32_t parameter) const {
        const UnitState& state = state_[units_.unit_of_parameter[parameter]];
        return state.is_unsharded ? state.unsharded[position_[parameter]] : no_buffer;
    }

    // --- backward

    void backward(ActivationWalk& walk, const ActivationWalk::Hooks& hooks) {
        for (auto b = static_cast<std::uint32_t>(model_.blocks.size()); b-- > 0;) {
            for (const UnitIndex u : units_of(b)) unshard_for_backward(u);
            if (b > 0)
                for (const UnitIndex u : units_of(b - 1)) prefetch(u);
            walk.backward(b, hooks, {}, false);
            const UnitIndex own = units_.unit_of_block[b];
            for (const UnitIndex u : units_of(b))
                if (u != own && !unit(u).is_root) reshard(u, false);
            if (!unit(own).is_root) post_backward(own);
        }
        post_backward(0);  // the root's inputs carry no gradient: it ends with backward itself
        finish_reduction();
    }

    void unshard_for_backward(UnitIndex u) {
        if (empty(u) || state_[u].is_unsharded) return;
        if (state_[u].gathering == no_buffer) all_gather(u);
        copy_out(u);
        builder_.free(state_[u].gathering, builder_.last(Stream::compute));
        state_[u].gathering = no_buffer;
    }

    void prefetch(UnitIndex u) {
        if (empty(u) || state_[u].is_unsharded || state_[u].gathering != no_buffer) return;
        all_gather(u);
    }

    /// Where autograd puts the gradient of a parameter. A tied weight's second use makes one of its own.
    BufferId gradient(std::uint32_t parameter) {
        if (!model_.parameters[parameter].trainable) return no_buffer;
        const UnitIndex u = units_.unit_of_parameter[parameter];
        std::vector<BufferId>& gradients = state_[u].gradients;
        gradients.resize(unit(u).parameters.size(), no_buffer);
        BufferId& known = gradients[position_[parameter]];
        const BufferId fresh =
            builder_.allocate(buffer(BufferRole::gradients, Category::gradients, compute_, u,
                                     model_.parameters[parameter].numel, position_[parameter] + 1));
        if (known == no_buffer)
            known = fresh;
        else
            second_contributions_.push_back({fresh, known});
        return fresh;
    }

    void add_second_contributions() {
        for (const auto& [from, to] : second_contributions_) {
            builder_.on_stream(Stream::compute, Accumulate{.from = {from}, .to = {to}, .always_add = true});
            builder_.free(from);
        }
        second_contributions_.clear();
    }

    void allocate_sums(UnitIndex u) {
        UnitState& state = state_[u];
        for (std::size_t i = 0; i < unit(u).parameters.size(); ++i) {
            const Parameter& parameter = model_.parameters[unit(u).parameters[i]];
            state.summed.push_back(
                parameter.trainable
                    ? builder_.allocate(buffer(BufferRole::gradients, Category::gradients,
                                               training_.reduce_dtype, u, parameter.numel, i + 1))
                    : no_buffer);
        }
    }

    /// A micro-batch that isn't reduced leaves its gradients in the dtype of the reduction.
    void sum_gradients(UnitIndex u) {
        UnitState& state = state_[u];
        if (state.summed.empty()) allocate_sums(u);
        for (std::size_t i = 0; i < state.gradients.size(); ++i) {
            if (state.gradients[i] == no_buffer) continue;
            builder_.on_stream(Stream::compute,
                               Accumulate{.from = {state.gradients[i]}, .to = {state.summed[i]}, .unit = u});
            builder_.free(state.gradients[i]);
            state.gradients[i] = no_buffer;
        }
        if (synchronises_) state.gradients = pipelined() ? std::exchange(state.summed, {}) : state.summed;
    }

    void post_backward(UnitIndex u) {
        UnitState& state = state_[u];
        if (empty(u)) return;
        // A pipeline leaves parameters gathered until the stage's last backward.
        if (synchronises_ || !pipelined()) reshard(u, false);
        if (sums_unsharded()) sum_gradients(u);
        if (!synchronises_) return;
        if (std::all_of(state.gradients.begin(), state.gradients.end(),
                        [](BufferId id) { return id == no_buffer; }))
            return;
        finish_reduction();
        const BufferId input =
            builder_.allocate(buffer(BufferRole::gradient_bucket, Category::communication_buffers,
                                     training_.reduce_dtype, u, state.trained_padded * ranks_));
        for (const BufferId gradient : state.gradients) {
            if (gradient == no_buffer) continue;
            builder_.on_stream(Stream::compute, Accumulate{.from = {gradient}, .to = {input}, .unit = u});
            if (!sums_unsharded() || pipelined()) builder_.free(gradient);  // other sums are resident
        }
        state.gradients.clear();
        reduce_scatter(u, input);
    }

    /// The reduction's input lives until the next unit's gradients are ready.
    void reduce_scatter(UnitIndex u, BufferId input) {
        UnitState& state = state_[u];
        const BufferId output = builder_.allocate(buffer(BufferRole::gradients, Category::gradients,
                                                         training_.reduce_dtype, u, state.trained_padded),
                                                  Stream::reduce);
        builder_.on_stream(Stream::reduce,
                           Collective{.kind = CollectiveKind::reduce_scatter,
                                      .group = GroupKind::shard_group,
                                      .send = {input},
                                      .receive = {output},
                                      .dtype = training_.reduce_dtype,
                                      .elements = state.trained_padded * ranks_,
                                      .unit = u},
                           builder_.last(Stream::compute));
        if (replicas_ > 1)
            builder_.on_stream(Stream::reduce, Collective{.kind = CollectiveKind::all_reduce,
                                                          .group = GroupKind::replica_group,
                                                          .send = {output},
                                                          .receive = {output},
                                                          .dtype = training_.reduce_dtype,
                                                          .elements = state.trained_padded,
                                                          .unit = u});
        reduction_inputs_.push_back(input);
        keep_gradient(u, output);
        reduced_ = builder_.last(Stream::reduce);
    }

    /// The reduced gradient becomes the sharded one: as it is, cast, added to the sum, or sent to the host.
    void keep_gradient(UnitIndex u, BufferId output) {
        UnitState& state = state_[u];
        if (on_host()) {
            reduction_inputs_.push_back(output);
            return;
        }
        const bool same = training_.reduce_dtype == training_.gradient_dtype;
        if (same && !accumulates()) {
            state.sharded_gradient = output;
            return;
        }
        if (!accumulates())
            state.sharded_gradient =
                builder_.allocate(buffer(BufferRole::gradients, Category::gradients, training_.gradient_dtype,
                                         u, state.trained_padded),
                                  Stream::reduce);
        builder_.on_stream(Stream::reduce,
                           Accumulate{.from = {output}, .to = {state.sharded_gradient}, .unit = u});
        reduction_inputs_.push_back(output);
    }

    void finish_reduction() {
        for (const BufferId id : reduction_inputs_) builder_.free(id, reduced_);
        reduction_inputs_.clear();
    }

    void step() {
        builder_.wait_for_all();
        step_position_ = builder_.next();
        for (OwnedParameter& parameter : optimizer_.parameters())
            parameter.gradient = state_[parameter.unit].sharded_gradient;
        optimizer_.step();
        if (accumulates() || on_host()) return;
        for (UnitState& state : state_) {
            if (state.sharded_gradient != no_buffer) builder_.free(state.sharded_gradient);
            state.sharded_gradient = no_buffer;
        }
    }

    const TorchStage* stage_;
    std::uint64_t stage_number_;
    const ModelSpec& model_;
    const TrainingConfig& training_;
    const ClusterSpec& cluster_;
    const TorchUnits& units_;
    std::uint64_t ranks_, rank_, replicas_;
    DType compute_;
    StepProgram program_;
    ProgramBuilder builder_;
    TorchOptimizer optimizer_;
    std::vector<UnitState> state_;
    std::vector<std::uint32_t> position_;  ///< by parameter: place in its unit
    std::vector<std::pair<BufferId, BufferId>> second_contributions_;
    BufferId workspace_ = no_buffer;
    BufferId forward_gather_ = no_buffer;
    std::vector<OperationId> forward_gather_copied_;
    std::vector<BufferId> reduction_inputs_;
    std::vector<OperationId> reduced_;
    OperationId step_position_ = 0;
    bool gathers_fp8_ = false;
    bool synchronises_ = true;                     ///< this backward reduces gradients
    std::vector<std::vector<Received>> received_;  ///< by chunk and micro-batch
    std::vector<BufferId> stage_outputs_;
};

}  // namespace

namespace {

EngineOutput empty_output(const Scenario& scenario) {
    EngineOutput output{.rule_set = "fsdp2 (PyTorch 2.6)", .layout = {}, .allocator = AllocatorKind::caching};
    output.constants.push_back(cublas_workspace_constant(scenario.cluster));
    const TrainingConfig& training = scenario.training;
    const bool replicated =
        training.shard_group > 1 && training.shard_group < training.data_parallel * training.context_parallel;
    // One group each for sharding, its replicas, tensor, context and pipeline parallelism.
    output.communicators = 1 + (replicated ? 1U : 0U) + (training.tensor_parallel > 1 ? 1U : 0U) +
                           (training.context_parallel > 1 ? 1U : 0U) +
                           (training.pipeline_parallel > 1 ? 1U : 0U);
    return output;
}

/// Stages hold consecutive ranks; the first of equal shards stands for its stage.
EngineOutput pipelined_fsdp2(const Scenario& whole, const Scenario& rank) {
    EngineOutput output = empty_output(rank);
    const std::uint64_t stages = whole.training.pipeline_parallel, width = whole.world_size() / stages;
    for (std::uint64_t s = 0; s < stages; ++s) {
        TorchStage stage = torch_stage(rank, s);
        const ModelSpec& model = stage.scenario.model;
        const TorchUnits units = torch_units(model, rank.training.fsdp.wrap.value_or("layer"));
        ShardLayout layout = fsdp2_layout(model, units, rank.training.shard_group);
        Fsdp2Program program(stage.scenario, units, 0, &stage, s);
        output.programs.push_back(program.build());
        output.host.push_back(program.host());
        output.program_ranks.push_back({{s * width, (s + 1) * width - 1}});
        if (s == 0) output.layout = layout;
        output.rank_models.push_back(
            {std::move(stage.scenario.model), std::move(layout), rank.training.sequence_length});
    }
    return output;
}

}  // namespace

EngineOutput fsdp2_engine(const Scenario& whole) {
    check_torch(whole);
    const Scenario scenario = rank_scenario(whole);
    if (whole.training.pipeline_parallel > 1) return pipelined_fsdp2(whole, scenario);
    const std::uint64_t ranks = scenario.training.shard_group;
    const TorchUnits units = torch_units(scenario.model, scenario.training.fsdp.wrap.value_or("layer"));
    EngineOutput output = empty_output(scenario);
    output.layout = fsdp2_layout(scenario.model, units, ranks);
    for (const auto& members : fsdp2_ranks_by_ownership(scenario.model, ranks)) {
        Fsdp2Program program(scenario, units, members.front());
        output.programs.push_back(program.build());
        output.host.push_back(program.host());
        output.program_ranks.push_back(
            fsdp2_world_ranks(members, ranks, scenario.training.tensor_parallel, scenario.world_size()));
    }
    add_rank_models(output, whole, scenario);
    return output;
}

}  // namespace zeroplan
