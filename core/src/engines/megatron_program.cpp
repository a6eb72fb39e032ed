#include "engines/megatron_program.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "engines/activation_walk.hpp"
#include "engines/megatron_layer.hpp"
#include "engines/megatron_state.hpp"
#include "engines/megatron_workspaces.hpp"
#include "engines/pipeline_schedule.hpp"

namespace zeroplan {
namespace {

/// A received activation and the gradient that goes back for it.
struct StageInput {
    BufferId value = no_buffer, gradient = no_buffer;
};

/// One micro-batch between its forward and its backward in one chunk.
struct InFlight {
    std::unique_ptr<ActivationWalk> walk;
    StageInput input;
    BufferId output = no_buffer;  ///< kept until backward by Megatron-LM 2021
    BufferId mask = no_buffer;    ///< attention mask, where it is kept for backward
};

class StageProgramBuilder {
public:
    StageProgramBuilder(const Scenario& scenario, const MegatronOptions& options, std::uint32_t stage)
        : scenario_(scenario),
          options_(options),
          training_(local_training(scenario, options)),
          stage_(stage),
          stage_model_(megatron_stage_model(scenario, options,
                                            stage_chunks(scenario.training, scenario.model.layers, stage))),
          state_(stage_model_, megatron_state_plan(scenario, options), stage == 0),
          builder_(result_.program) {}

    StageProgram build() {
        find_fused_parameters();
        build_load();
        build_init();
        build_step();
        build_save();
        result_.rank_model = {stage_model_.model, state_.layout(), training_.sequence_length};
        return std::move(result_);
    }

private:
    using Chunk = std::uint32_t;

    static TrainingConfig local_training(const Scenario& scenario, const MegatronOptions& options) {
        TrainingConfig training = scenario.training;
        training.sequence_length = local_sequence_length(training);
        // A group of layers that is recomputed together is one block of the stage's model.
        if (training.recompute == Recompute::full && options.recompute_block) training.recompute_every = 1;
        return training;
    }

    bool is_core() const { return options_.generation == MegatronGeneration::core; }
    Chunk chunk_count() const { return static_cast<Chunk>(stage_model_.chunks.size()); }
    bool has_embedding(Chunk chunk) const { return stage_ == 0 && chunk == 0; }
    bool has_head(Chunk chunk) const {
        return stage_ + 1 == training_.pipeline_parallel && chunk + 1 == chunk_count();
    }
    const ModelSpec& model() const { return stage_model_.model; }

    /// Weights whose gradient the matrix product itself adds to the buffer: those of linears, with
    /// gradient_accumulation_fusion.
    void find_fused_parameters() {
        fused_.assign(model().parameters.size(), false);
        grouped_.assign(model().parameters.size(), false);
        for (std::uint32_t p = 0; p < model().parameters.size(); ++p)
            grouped_[p] = model().parameters[p].name.find(".experts.") != std::string::npos &&
                          !model().parameters[p].name.ends_with("weight0");
        if (!options_.gradient_accumulation_fusion) return;
        for (const Block& block : model().blocks)
            for (const Operator& op : model().block_kinds[block.kind].operators)
                if (op.kind == OperatorKind::linear) find_fused_parameters(block, op);
        for (std::uint32_t p = 0; p < model().parameters.size(); ++p)
            if (const auto owner = model().parameters[p].shared_with) fused_[*owner] = false;
    }

    /// The router's product is PyTorch's own.
    void find_fused_parameters(const Block& block, const Operator& op) {
        for (const std::uint32_t position : op.parameters) {
            const Parameter& parameter = model().parameters[block.parameters[position]];
            if (parameter.shape.size() == 2 && !parameter.name.ends_with("router.weight"))
                fused_[block.parameters[position]] = true;
        }
    }

    // --- what stays
    // ----------------------------------------------------------------------------------------------------

    void build_load() {
        result_.program.load = {"load", 1, {}};
        builder_.begin(result_.program.load);
        state_.load(builder_);
    }

    void build_init() {
        result_.program.init = {"init", 1, {}};
        builder_.begin(result_.program.init);
        const MegatronContext context = megatron_context(scenario_, options_);
        const bool torch_products = has_head(chunk_count() - 1) || !options_.transformer_engine ||
                                    context.attention == AttentionKernel::eager || context.decoder.experts;
        MegatronWorkspaces workspaces =
            megatron_workspaces(scenario_, options_, torch_products, context.decoder.experts.has_value());
        for (const std::uint64_t bytes : workspaces.bytes) allocate_workspace(DType::uint8, bytes);
        result_.constants = std::move(workspaces.constants);
        if (stage_model_.memory_buffer_elements > 0)
            allocate_workspace(training_.compute_dtype, stage_model_.memory_buffer_elements);
        if (context.decoder.position_embedding == "rope")
            allocate_workspace(DType::fp32, scenario_.training.sequence_length * context.decoder.head_dim);
        if (options_.transformer_engine) allocate_dummy_gradients();
        state_.initialise_optimizer(builder_);
        state_.allocate_main_gradients(builder_);
        // Each chunk keeps the input it received last, with its gradient, until it is given the next one.
        retained_.assign(chunk_count(), {});
        for (Chunk c = 0; c < chunk_count(); ++c) {
            if (has_embedding(c)) continue;
            retained_[c] = {allocate_input(c), allocate_input_gradient(c)};
        }
        initial_retained_ = retained_;
    }

    void allocate_workspace(DType dtype, std::uint64_t elements) {
        builder_.allocate({.role = BufferRole::workspace,
                           .category = Category::temporaries,
                           .dtype = dtype,
                           .elements = elements});
    }

    /// Transformer Engine hands autograd one never-written gradient a weight shape, which it keeps, where the
    /// product itself adds to the gradient buffer. source: transformer_engine get_dummy_wgrad.
    void allocate_dummy_gradients() {
        std::vector<std::vector<std::uint64_t>> shapes;
        for (std::uint32_t p = 0; p < model().parameters.size(); ++p) {
            const auto& shape = model().parameters[p].shape;
            if (!fused_[p] || std::find(shapes.begin(), shapes.end(), shape) != shapes.end()) continue;
            shapes.push_back(shape);
            allocate_workspace(training_.compute_dtype, model().parameters[p].numel);
        }
    }

    // --- tensors between stages
    // ----------------------------------------------------------------------------------------

    const TensorSpec& tensor(std::uint32_t block, std::uint32_t index) const {
        return model().block_kinds[model().blocks[block].kind].tensors[index];
    }
    BufferId allocate_tensor(std::uint32_t block, std::uint32_t index, BufferRole role) {
        const TensorSpec& spec = tensor(block, index);
        return builder_.allocate(
            {.role = role,
             .category = spec.category,
             .dtype = resolve(spec.dtype, training_.compute_dtype),
             .owner = block,
             .tensor = index,
             .elements = elements(spec.extent, training_.micro_batch_size, training_.sequence_length)});
    }
    BufferId allocate_input(Chunk c) {
        return allocate_tensor(stage_model_.chunks[c].first, 0, BufferRole::activation);
    }
    BufferId allocate_input_gradient(Chunk c) {
        return allocate_tensor(stage_model_.chunks[c].first, 0, BufferRole::activation_gradient);
    }
    BufferId allocate_output_gradient(Chunk c) {
        const std::uint32_t last = stage_model_.chunks[c].last;
        const std::uint32_t output = model().block_kinds[model().blocks[last].kind].output;
        return allocate_tensor(last, output, BufferRole::activation_gradient);
    }
    void free_if_there(BufferId& buffer) {
        if (buffer != no_buffer) builder_.free(buffer);
        buffer = no_buffer;
    }
    void free(StageInput& input) {
        free_if_there(input.value);
        free_if_there(input.gradient);
    }

    /// The data loader makes a boolean mask of b · s² (megatron-core) or s² (2021) elements.
    bool makes_mask(Chunk c) const {
        if (!is_core()) return true;
        return options_.create_attention_mask_in_dataloader && (has_embedding(c) || has_head(c));
    }
    bool keeps_mask() const { return !is_core() || training_.recompute == Recompute::full; }
    BufferId allocate_mask() {
        const std::uint64_t samples = is_core() ? training_.micro_batch_size : 1;
        return builder_.allocate(
            {.role = BufferRole::batch,
             .category = Category::activations,
             .dtype = DType::uint8,
             .elements = samples * training_.sequence_length * scenario_.training.sequence_length});
    }

    // --- the step
    // --------------------------------------------------------------------------------------------------------

    void build_step() {
        const PipelineShape shape{training_.pipeline_schedule,
                                  static_cast<std::uint32_t>(training_.pipeline_parallel), chunk_count(),
                                  static_cast<std::uint32_t>(training_.gradient_accumulation_steps)};
        hooks_ = walk_hooks();
        result_.program.step.reserve(4);
        start_section("micro_batches", 1);
        state_.gather_parameters(builder_);
        // Megatron-LM 2021 cleared the 16-bit gradients only.
        if (is_core()) state_.free_main_gradients(builder_);
        const bool one_f_one_b =
            shape.chunks == 1 && (shape.stages == 1 || shape.schedule != PipelineSchedule::gpipe);
        if (one_f_one_b)
            run_one_forward_one_backward(shape);
        else
            run_interleaved(shape);
        end_of_pipeline();
        if (!is_core()) reduce_flattened();
        state_.append_step(builder_);
        if (is_core()) state_.allocate_main_gradients(builder_);
        builder_.wait_for_all();
    }

    // --- messages between stages

    std::uint32_t virtual_stage(Chunk c) const {
        return static_cast<std::uint32_t>(c * training_.pipeline_parallel + stage_);
    }
    /// Interleaved schedules overlap their messages (overlap_p2p_comm); 1F1B waits for each.
    /// source: megatron/core/pipeline_parallel/schedules.py.
    Stream message_stream() const { return chunk_count() > 1 ? Stream::exchange : Stream::compute; }

    /// Megatron-LM 2021 sent each tensor-parallel rank's part and gathered it there
    /// (scatter_gather_tensors_in_pipeline).
    bool scatters_messages() const { return !is_core() && training_.tensor_parallel > 1; }

    /// `lower`: the virtual stage that the message leaves forward, or comes back to.
    void transfer(bool send, bool gradients, std::uint32_t lower, std::uint32_t block, std::uint32_t index) {
        const TensorSpec& spec = tensor(block, index);
        const Transfer message{
            .send = send,
            .channel = 2 * lower + (gradients ? 1U : 0U),
            .dtype = resolve(spec.dtype, storage_dtype(training_.compute_dtype)),
            .elements = elements(spec.extent, training_.micro_batch_size, training_.sequence_length) /
                        (scatters_messages() ? training_.tensor_parallel : 1),
            .to_next = !gradients};
        if (send) {
            builder_.on_stream(message_stream(), message, builder_.last(Stream::compute));
            return;
        }
        builder_.on_stream(Stream::compute, message);
        if (!scatters_messages()) return;
        builder_.on_stream(Stream::compute,
                           Collective{.kind = CollectiveKind::all_gather,
                                      .group = GroupKind::tensor_group,
                                      .send = {},
                                      .receive = {},
                                      .dtype = message.dtype,
                                      .elements = message.elements * training_.tensor_parallel});
    }
    void receive_activations(Chunk c) {
        if (!has_embedding(c)) transfer(false, false, virtual_stage(c) - 1, stage_model_.chunks[c].first, 0);
    }
    void send_gradients(Chunk c) {
        if (!has_embedding(c)) transfer(true, true, virtual_stage(c) - 1, stage_model_.chunks[c].first, 0);
    }
    std::uint32_t output_of(std::uint32_t block) const {
        return model().block_kinds[model().blocks[block].kind].output;
    }
    void send_activations(Chunk c) {
        const std::uint32_t last = stage_model_.chunks[c].last;
        if (!has_head(c)) transfer(true, false, virtual_stage(c), last, output_of(last));
    }
    void receive_gradients(Chunk c) {
        const std::uint32_t last = stage_model_.chunks[c].last;
        if (!has_head(c)) transfer(false, true, virtual_stage(c), last, output_of(last));
    }

    void start_section(std::string name, std::uint64_t repeat) {
        if (!result_.program.step.empty()) builder_.wait_for_all();
        result_.program.step.push_back({std::move(name), repeat, {}});
        builder_.begin(result_.program.step.back());
    }

    /// After two groups of micro-batches the steady part repeats itself. What lies beyond is stored as one
    /// micro-batch forward and backward through every chunk, on top of what is in flight then: no more than
    /// the true order has live at once, and the same work.
    void run_interleaved(PipelineShape shape) {
        const std::uint32_t explicit_groups = shape.schedule == PipelineSchedule::gpipe ? ~0U : 2;
        const std::uint32_t groups = (shape.micro_batches + shape.stages - 1) / shape.stages;
        const std::uint32_t beyond = groups > explicit_groups ? (groups - explicit_groups) * shape.stages : 0;
        shape.micro_batches -= beyond;
        const std::vector<PipelineAction> actions = pipeline_schedule(shape, stage_);
        const auto first_backward =
            std::find_if(actions.begin(), actions.end(), [](const PipelineAction& a) { return !a.forward; });
        run_all(actions, 0, static_cast<std::size_t>(first_backward - actions.begin()) + 1);
        if (beyond > 0) {
            start_section("steady_micro_batches", beyond);
            for (Chunk c = 0; c < chunk_count(); ++c) pass_alone(c);
            start_section("last_micro_batches_and_step", 1);
        }
        run_all(actions, static_cast<std::size_t>(first_backward - actions.begin()) + 1, actions.size());
    }

    /// One micro-batch through one chunk that leaves nothing.
    void pass_alone(Chunk c) {
        InFlight flight;
        if (!has_embedding(c)) flight.input.value = allocate_input(c);
        run_forward(flight, c);
        BufferId gradient = has_head(c) ? no_buffer : allocate_output_gradient(c);
        run_backward(flight, c, gradient, false);
        free_if_there(gradient);
        free(flight.input);
    }

    static bool is_last_backward(const std::vector<PipelineAction>& actions, std::size_t a) {
        return std::none_of(
            actions.begin() + static_cast<std::ptrdiff_t>(a) + 1, actions.end(),
            [&](const PipelineAction& later) { return !later.forward && later.chunk == actions[a].chunk; });
    }

    /// In the steady part the gradient of the next backward comes with the input of the forward before it.
    void run_all(const std::vector<PipelineAction>& actions, std::size_t from, std::size_t to) {
        for (std::size_t a = from; a < to; ++a) {
            const PipelineAction& action = actions[a];
            if (!action.forward) {
                backward(action.micro_batch, action.chunk, is_last_backward(actions, a));
                continue;
            }
            const bool steady = a + 1 < actions.size() && !actions[a + 1].forward;
            if (steady && !has_head(actions[a + 1].chunk))
                received_gradient_ = allocate_output_gradient(actions[a + 1].chunk);
            forward(action.micro_batch, action.chunk);
        }
    }

    /// The steady part repeats one forward and one backward of equal sizes, so that it is stored once. What
    /// is live at any time is the same as with the oldest micro-batch going backward.
    void run_one_forward_one_backward(const PipelineShape& shape) {
        const std::uint32_t warm_up = std::min(shape.stages - 1 - stage_, shape.micro_batches);
        for (std::uint32_t m = 0; m < warm_up; ++m) forward(m, 0);
        const std::uint32_t steady = shape.micro_batches - warm_up;
        if (steady > 0) steady_pass(warm_up, warm_up == 0 && steady == 1);
        if (steady > 2) {
            start_section("steady_micro_batches", steady - 2);
            const StageInput held = held_;
            const BufferId held_gradient = held_output_gradient_;
            steady_pass(warm_up + 1, false);
            restore(held, held_gradient);
            start_section("last_micro_batches_and_step", 1);
        }
        if (steady > 1) steady_pass(warm_up + 2, warm_up == 0);
        for (std::uint32_t m = warm_up; m-- > 0;) backward(m, 0, m == 0);
    }

    void steady_pass(std::uint32_t micro_batch, bool last) {
        forward(micro_batch, 0);
        backward(micro_batch, 0, last);
    }

    /// A repeated section must end with the buffers it began with.
    void restore(const StageInput& held, BufferId held_gradient) {
        free(held_);
        free_if_there(held_output_gradient_);
        for (const BufferId buffer : {held.value, held.gradient, held_gradient})
            if (buffer != no_buffer) builder_.allocate_again(buffer);
        held_ = held;
        held_output_gradient_ = held_gradient;
    }

    void forward(std::uint32_t micro_batch, Chunk c) {
        InFlight& flight = in_flight_[{micro_batch, c}];
        if (!has_embedding(c)) flight.input.value = allocate_input(c);
        receive_activations(c);
        if (chunk_count() == 1)
            free(retained_[c]);
        else
            retain(micro_batch, c);
        run_forward(flight, c);
        send_activations(c);
        if (chunk_count() == 1) {
            free(held_);
        } else {
            const auto before = std::exchange(last_forwarded_, std::pair(micro_batch, c));
            if (before) release_unless_retained(before->first, before->second);
        }
    }

    void run_forward(InFlight& flight, Chunk c) {
        if (makes_mask(c)) flight.mask = allocate_mask();
        const ChunkBlocks blocks = stage_model_.chunks[c];
        flight.walk = take_walk();
        flight.walk->begin_chunk(blocks.first, blocks.last, flight.input.value);
        for (std::uint32_t block = blocks.first; block <= blocks.last; ++block)
            flight.walk->forward(block, hooks_, {});
        if (!keeps_mask()) free_if_there(flight.mask);
        flight.output = flight.walk->output();
        // Once sent, only the output's place in the graph is needed (deallocate_pipeline_outputs).
        if (is_core()) free_if_there(flight.output);
    }

    /// `gradient`: of the output, received; no_buffer where the chunk ends with the loss.
    /// `last`: the chunk's last of the step, which hands out the parameters' gradients.
    void run_backward(InFlight& flight, Chunk c, BufferId gradient, bool last) {
        if (gradient != no_buffer) flight.walk->receive_gradient(gradient);
        const ChunkBlocks blocks = stage_model_.chunks[c];
        for (std::uint32_t block = blocks.last + 1; block-- > blocks.first;)
            backward_block(flight, block, last);
        free_if_there(flight.mask);
        free_if_there(flight.output);
        if (!has_embedding(c)) flight.input.gradient = flight.walk->input_gradient();
        idle_walks_.push_back(std::move(flight.walk));
    }

    void backward_block(InFlight& flight, std::uint32_t block, bool last) {
        flight.walk->backward(block, hooks_, {}, false);
        if (!last) return;
        for (const std::uint32_t parameter : model().blocks[block].parameters)
            state_.gradient_ready(builder_, parameter);
    }

    std::unique_ptr<ActivationWalk> take_walk() {
        if (idle_walks_.empty()) {
            auto walk = std::make_unique<ActivationWalk>(model(), training_, builder_, parameter_units(),
                                                         no_buffer, ActivationWalk::GradientSums::fresh);
            walk->use_reentrant_checkpoints();
            return walk;
        }
        std::unique_ptr<ActivationWalk> walk = std::move(idle_walks_.back());
        idle_walks_.pop_back();
        return walk;
    }

    void backward(std::uint32_t micro_batch, Chunk c, bool last) {
        InFlight& flight = in_flight_.at({micro_batch, c});
        if (chunk_count() == 1) free(held_);
        BufferId gradient = no_buffer;
        if (!has_head(c)) {
            gradient = received_gradient_ != no_buffer ? received_gradient_ : allocate_output_gradient(c);
            received_gradient_ = no_buffer;
            free_if_there(held_output_gradient_);
        }
        receive_gradients(c);
        run_backward(flight, c, gradient, last);
        send_gradients(c);
        if (chunk_count() == 1) {
            // The variables of the schedule's loop keep them until they are assigned again.
            held_ = flight.input;
            held_output_gradient_ = gradient;
            in_flight_.erase({micro_batch, c});
        } else {
            free_if_there(gradient);
            // The variable of the last gradient sent back is assigned again only now.
            if (!is_retained(micro_batch, c)) std::swap(held_.gradient, flight.input.gradient);
            release_unless_retained(micro_batch, c);
        }
    }

    /// Megatron-LM 2021: main_grad referred to the last step's gradients until now. This step's are copied
    /// into one flat tensor, all-reduced there and copied back; then each is widened for the optimizer before
    /// the last step's copy goes.
    void reduce_flattened() {
        std::uint64_t flat = 0;
        for (const BufferId old : state_.kept_gradients()) {
            flat += builder_.buffer(old).elements;
            builder_.free(old);
        }
        const BufferId coalesced =
            builder_.allocate({.role = BufferRole::gradient_bucket,
                               .category = Category::communication_buffers,
                               .dtype = training_.gradient_dtype,
                               .owner = static_cast<std::uint32_t>(model().parameters.size()),
                               .elements = flat});
        if (flat > 0)
            builder_.on_stream(Stream::compute, Collective{.kind = CollectiveKind::all_reduce,
                                                           .group = GroupKind::replica_group,
                                                           .send = {coalesced},
                                                           .receive = {coalesced},
                                                           .dtype = training_.gradient_dtype,
                                                           .elements = flat});
        builder_.free(coalesced);
        state_.renew_main_gradients(builder_);
        for (const BufferId buffer : step_gradients_)
            if (buffer != no_buffer) builder_.free(buffer);
        for (const BufferId old : state_.kept_gradients()) builder_.allocate_again(old);
    }

    // --- inputs that chunks of an interleaved schedule keep
    // --------------------------------------------------------------

    void retain(std::uint32_t micro_batch, Chunk c) {
        const auto previous = last_forward_.find(c);
        if (previous == last_forward_.end()) free(retained_[c]);
        const bool had = previous != last_forward_.end();
        const std::uint32_t before = had ? previous->second : 0;
        last_forward_[c] = micro_batch;
        if (had) release_unless_retained(before, c);
    }
    /// The chunk's last input, and that of the last forward of all, whose output still leads to it.
    bool is_retained(std::uint32_t micro_batch, Chunk c) const {
        return last_forward_.at(c) == micro_batch || last_forwarded_ == std::pair(micro_batch, c);
    }
    void release_unless_retained(std::uint32_t micro_batch, Chunk c) {
        const auto found = in_flight_.find({micro_batch, c});
        if (found == in_flight_.end() || found->second.walk != nullptr) return;  // still in flight
        if (is_retained(micro_batch, c)) return;
        free(found->second.input);
        in_flight_.erase(found);
    }

    /// Each chunk is left with its last input, as at the start of the step.
    void end_of_pipeline() {
        free_if_there(held_output_gradient_);
        free(held_);
        for (Chunk c = 0; c < chunk_count(); ++c) {
            if (has_embedding(c)) continue;
            if (chunk_count() > 1) free(in_flight_.at({last_forward_.at(c), c}).input);
            retained_[c] = initial_retained_[c];
            builder_.allocate_again(retained_[c].value);
            builder_.allocate_again(retained_[c].gradient);
        }
    }

    // --- gradients of parameters
    // ----------------------------------------------------------------------------------------

    std::vector<std::uint32_t> parameter_units() const {
        std::vector<std::uint32_t> units(model().parameters.size());
        for (std::uint32_t p = 0; p < units.size(); ++p)
            units[p] = model().parameters[p].shared_with.value_or(p);
        return units;
    }

    ActivationWalk::Hooks walk_hooks() {
        return {.parameters = [this](std::uint32_t p) { return one_of_a_group(p, state_.parameter(p)); },
                .gradients = [this](std::uint32_t p) { return one_of_a_group(p, gradient_of(p)); },
                .accumulate = [](std::uint32_t) { return false; },
                .after =
                    [this](ComputePhase phase, std::uint32_t, const Operator&) {
                        if (phase == ComputePhase::backward) add_up();
                    }};
    }

    /// A grouped product's weights count as one argument, that of its first.
    BufferId one_of_a_group(std::uint32_t parameter, BufferId buffer) const {
        return grouped_[parameter] ? no_buffer : buffer;
    }

    /// Autograd makes a parameter's gradient in the parameter's dtype; it is then added to the buffer and
    /// freed.
    BufferId gradient_of(std::uint32_t parameter) {
        if (fused_[parameter]) return state_.gradient_buffer(parameter);
        const Buffer buffer{.role = BufferRole::gradients,
                            .category = Category::gradients,
                            .dtype = training_.parameter_dtype,
                            .owner = parameter,
                            .elements = model().parameters[parameter].numel};
        BufferId sum = state_.gradient_buffer(parameter);
        if (sum == no_buffer) {
            step_gradients_.resize(model().parameters.size(), no_buffer);
            sum = step_gradients_[parameter];
            if (sum == no_buffer) return step_gradients_[parameter] = builder_.allocate(buffer);
        }
        pending_.push_back({builder_.allocate(buffer), sum});
        return pending_.back().first;
    }

    void add_up() {
        for (const auto& [gradient, sum] : pending_) {
            builder_.on_stream(Stream::compute,
                               Accumulate{.from = {gradient}, .to = {sum}, .always_add = true});
            builder_.free(gradient);
        }
        pending_.clear();
    }

    /// Checkpoints are written by every rank from its own shards.
    void build_save() { result_.program.save = {"save", 1, {}}; }

    const Scenario& scenario_;
    const MegatronOptions& options_;
    TrainingConfig training_;
    std::uint32_t stage_;
    StageModel stage_model_;
    StageProgram result_;
    MegatronState state_;
    ProgramBuilder builder_;
    ActivationWalk::Hooks hooks_;
    std::vector<bool> fused_, grouped_;                    ///< by parameter
    std::vector<StageInput> retained_, initial_retained_;  ///< by chunk
    std::map<std::pair<std::uint32_t, Chunk>, InFlight> in_flight_;
    std::map<Chunk, std::uint32_t> last_forward_;
    std::optional<std::pair<std::uint32_t, Chunk>> last_forwarded_;
    StageInput held_;
    BufferId held_output_gradient_ = no_buffer, received_gradient_ = no_buffer;
    std::vector<std::unique_ptr<ActivationWalk>> idle_walks_;
    std::vector<BufferId> step_gradients_;
    std::vector<std::pair<BufferId, BufferId>> pending_;
};

}  // namespace

StageProgram megatron_stage_program(const Scenario& scenario, const MegatronOptions& options,
                                    std::uint32_t stage) {
    return StageProgramBuilder(scenario, options, stage).build();
}

}  // namespace zeroplan
