#include "engines/deepspeed_program.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>
#include <variant>

#include "engines/deepspeed_bf16.hpp"
#include "engines/deepspeed_fused.hpp"
#include "engines/deepspeed_partitioned.hpp"
#include "engines/deepspeed_pipe.hpp"
#include "engines/deepspeed_stage3.hpp"
#include "engines/torch_step.hpp"
#include "engines/torch_units.hpp"

namespace zeroplan {
namespace {

std::unique_ptr<ActivationWalk> deepspeed_walk(const DeepSpeedRank& rank, const DeepSpeedStagePlace& place,
                                               ProgramBuilder& builder, BufferId workspace) {
    auto walk =
        std::make_unique<ActivationWalk>(rank.model, rank.training, builder, parameter_owners(rank.model),
                                         workspace, ActivationWalk::GradientSums::fresh);
    // deepspeed.checkpointing is reentrant.
    if (place.megatron) walk->use_reentrant_checkpoints();
    const std::uint64_t parts = rank.options.partition_activations ? rank.training.tensor_parallel : 1;
    if (rank.training.offload_activations != OffloadTarget::none)
        walk->block_on_copies(parts);
    else
        walk->partition_checkpoints(parts);
    return walk;
}

/// The operators with parameters in the order in which a micro-batch runs them, forward and backward: what
/// DeepSpeed records in the first one. Found by a walk whose program is thrown away.
std::vector<ModuleVisit> module_order(const DeepSpeedRank& rank, const DeepSpeedStagePlace& place) {
    std::vector<ModuleVisit> order;
    StepProgram scratch;
    Section section;
    ProgramBuilder builder(scratch);
    builder.begin(section);
    const auto record = [&](ComputePhase, std::uint32_t block, const Operator& op) {
        if (op.parameters.empty()) return;
        ModuleVisit visit;
        for (const std::uint32_t position : op.parameters) {
            const std::uint32_t p = owner_of(rank.model, rank.model.blocks[block].parameters[position]);
            if (std::find(visit.parameters.begin(), visit.parameters.end(), p) == visit.parameters.end())
                visit.parameters.push_back(p);
        }
        order.push_back(std::move(visit));
    };
    const ActivationWalk::Hooks hooks{.parameters = [](std::uint32_t) { return no_buffer; },
                                      .gradients = [](std::uint32_t) { return no_buffer; },
                                      .accumulate = [](std::uint32_t) { return false; },
                                      .before = record};
    const auto walk = deepspeed_walk(rank, place, builder, no_buffer);
    walk->begin_chunk(place.blocks.first, place.blocks.last, no_buffer);
    for (std::uint32_t b = place.blocks.first; b <= place.blocks.last; ++b) walk->forward(b, hooks, {});
    for (std::uint32_t b = place.blocks.last + 1; b-- > place.blocks.first;)
        walk->backward(b, hooks, {}, false);
    return order;
}

using Wrapper = std::variant<DeepSpeedFused, DeepSpeedBf16, DeepSpeedPartitioned, DeepSpeedStage3>;

Wrapper make_wrapper(const DeepSpeedRank& rank, const DeepSpeedStagePlace& place, ProgramBuilder& builder) {
    switch (deepspeed_wrapper(rank.training)) {
        case DeepSpeedWrapper::plain:
            return DeepSpeedFused(rank, builder, false);
        case DeepSpeedWrapper::fused:
            return DeepSpeedFused(rank, builder, true);
        case DeepSpeedWrapper::bf16:
            return DeepSpeedBf16(rank, builder);
        case DeepSpeedWrapper::stage3:
            return DeepSpeedStage3(rank, builder, module_order(rank, place));
        case DeepSpeedWrapper::partitioned:
            break;
    }
    return DeepSpeedPartitioned(rank, builder);
}

class DeepSpeedProgram {
public:
    DeepSpeedProgram(const DeepSpeedRank& rank, const DeepSpeedStagePlace& place)
        : rank_(rank),
          place_(place),
          builder_(program_),
          pipe_(rank, place, builder_),
          gradients_(rank.model, builder_, rank.training.parameter_dtype),
          wrapper_(make_wrapper(rank, place, builder_)) {}

    StepProgram build() {
        hooks_ = walk_hooks();
        program_.load = {"load", 1, {}};
        builder_.begin(program_.load);
        std::visit([](auto& wrapper) { wrapper.load(); }, wrapper_);
        allocate_workspaces();
        program_.init = {"init", 1, {}};
        builder_.begin(program_.init);
        std::visit([](auto& wrapper) { wrapper.init(); }, wrapper_);
        pipe_.allocate_receive_buffers();
        build_step();
        program_.save = {"save", 1, {}};
        builder_.begin(program_.save);
        if (auto* stage3 = std::get_if<DeepSpeedStage3>(&wrapper_)) stage3->save();
        return std::move(program_);
    }

private:
    const TrainingConfig& training() const { return rank_.training; }

    /// cuBLAS's, from the caching allocator since PyTorch 1.11, the release beside DeepSpeed 0.6.
    void allocate_workspaces() {
        if (place_.compute_capability == 0 || rank_.options.version < DeepSpeedVersion{0, 6}) return;
        workspace_ = allocate_cublas_workspaces(builder_, place_.compute_capability);
    }

    ActivationWalk::Hooks walk_hooks() {
        return {.parameters =
                    [this](std::uint32_t p) {
                        return std::visit([p](auto& wrapper) { return wrapper.values(p); }, wrapper_);
                    },
                .gradients =
                    [this](std::uint32_t p) {
                        enter_module();
                        return gradients_.fresh(p);
                    },
                .accumulate = [](std::uint32_t) { return false; },
                .before =
                    [this](ComputePhase, std::uint32_t, const Operator& op) {
                        if (!op.parameters.empty()) enter_module();
                    },
                .after =
                    [this](ComputePhase phase, std::uint32_t, const Operator& op) {
                        auto* stage3 = std::get_if<DeepSpeedStage3>(&wrapper_);
                        if (stage3 != nullptr && !op.parameters.empty()) stage3->leave();
                        if (phase == ComputePhase::backward) hand_over_gradients();
                    },
                .waits =
                    [this] {
                        auto* stage3 = std::get_if<DeepSpeedStage3>(&wrapper_);
                        return stage3 == nullptr ? std::vector<OperationId>{} : stage3->take_waits();
                    }};
    }

    void enter_module() {
        if (auto* stage3 = std::get_if<DeepSpeedStage3>(&wrapper_)) stage3->enter();
    }

    void hand_over_gradients() {
        for (const auto& [p, gradient] : gradients_.collect())
            std::visit([p = p, g = gradient](auto& wrapper) { wrapper.gradient_ready(p, g); }, wrapper_);
    }

    // --- the step: 1F1B (deepspeed/runtime/pipe/schedule.py, TrainSchedule), which without a pipeline is one
    // micro-batch after another

    void build_step() {
        const auto micro_batches = training().gradient_accumulation_steps;
        const std::uint64_t warm_up =
            std::min<std::uint64_t>(place_.stages - 1 - place_.stage, micro_batches - 1);
        const std::uint64_t steady = micro_batches - warm_up;
        program_.step.reserve(3);
        const bool one_section = steady == 1;
        start_section(one_section ? "last_micro_batch_and_step" : "micro_batch", 1);
        for (std::uint64_t m = 0; m < warm_up; ++m) forward();
        if (steady > 1) pass(false);
        if (steady > 2) {
            start_section("micro_batches", steady - 2);
            pass(false);
        }
        if (!one_section) start_section("last_micro_batch_and_step", 1);
        pass(warm_up == 0);
        for (std::uint64_t m = 0; m < warm_up; ++m) backward(m + 1 == warm_up);
        const OperationId position = std::visit([](auto& wrapper) { return wrapper.step(); }, wrapper_);
        builder_.wait_for_all();
        const auto states =
            std::visit([](auto& wrapper) { return wrapper.states_of_first_step(); }, wrapper_);
        program_.first_step = first_step_of(program_.step, states, position);
    }

    void start_section(std::string name, std::uint64_t repeat) {
        if (!program_.step.empty()) builder_.wait_for_all();
        program_.step.push_back({std::move(name), repeat, {}});
        builder_.begin(program_.step.back());
    }

    /// One forward and one backward. Their micro-batches are equally large, so that the one that went forward
    /// may as well be the one that goes backward: the section then repeats itself.
    void pass(bool last) {
        forward();
        std::rotate(flights_.begin(), flights_.end() - 1, flights_.end());
        backward(last);
    }

    void forward() {
        DeepSpeedFlight flight;
        if (place_.megatron) flight.mask = allocate_mask();
        pipe_.receive(flight);
        flight.walk = deepspeed_walk(rank_, place_, builder_, workspace_);
        if (auto* stage3 = std::get_if<DeepSpeedStage3>(&wrapper_)) stage3->begin_micro_batch();
        flight.walk->begin_chunk(place_.blocks.first, place_.blocks.last, flight.input);
        for (std::uint32_t b = place_.blocks.first; b <= place_.blocks.last; ++b)
            flight.walk->forward(b, hooks_, {});
        pipe_.overwrite_oldest_logits();
        pipe_.keep_output(flight);
        flights_.push_back(std::move(flight));
    }

    void backward(bool last) {
        DeepSpeedFlight flight = std::move(flights_.front());
        flights_.pop_front();
        const BufferId gradient = pipe_.receive_gradient(flight);
        if (gradient != no_buffer) flight.walk->receive_gradient(gradient);
        std::visit([last](auto& wrapper) { wrapper.begin_backward(last); }, wrapper_);
        for (std::uint32_t b = place_.blocks.last + 1; b-- > place_.blocks.first;)
            flight.walk->backward(b, hooks_, {}, false);
        pipe_.finish(flight, gradient);
        pipe_.keep_logits();
        std::visit([last](auto& wrapper) { wrapper.end_backward(last); }, wrapper_);
    }

    /// One boolean mask a micro-batch, for all its samples.
    BufferId allocate_mask() {
        return builder_.allocate({.role = BufferRole::batch,
                                  .category = Category::activations,
                                  .dtype = DType::uint8,
                                  .elements = training().sequence_length * training().sequence_length});
    }

    const DeepSpeedRank& rank_;
    const DeepSpeedStagePlace& place_;
    StepProgram program_;
    ProgramBuilder builder_;
    DeepSpeedPipe pipe_;
    AutogradGradients gradients_;
    Wrapper wrapper_;
    ActivationWalk::Hooks hooks_;
    BufferId workspace_ = no_buffer;
    std::deque<DeepSpeedFlight> flights_;
};

}  // namespace

StepProgram deepspeed_program(const DeepSpeedRank& rank, const DeepSpeedStagePlace& place) {
    return DeepSpeedProgram(rank, place).build();
}

}  // namespace zeroplan
