#include <fmt/format.h>

#include <utility>

#include "engines/activation_walk.hpp"
#include "engines/engine.hpp"
#include "engines/llm_c_checks.hpp"
#include "engines/llm_c_memory.hpp"
#include "engines/torch_units.hpp"

namespace zeroplan {
namespace {

/// cublaslt_workspace_size (llm.c cublas_common.h).
constexpr std::uint64_t matrix_workspace = 32ULL << 20;

/// Everything is allocated before the first step, and nothing in it: each kind is one allocation, of which
/// tensors are parts. source: llm.c train_gpt2.cu, gpt2_allocate_state
class LlmCProgram {
public:
    explicit LlmCProgram(const Scenario& scenario)
        : model_(scenario.model),
          training_(scenario.training),
          shards_(llm_c_shards(scenario.model, scenario.training)),
          builder_(program_) {}

    StepProgram build() {
        const std::uint64_t parameters = model_.parameter_count(), own = parameters / shards_;
        program_.load = {"load", 1, {}};
        builder_.begin(program_.load);
        values_ = take(BufferRole::parameters, Category::parameters, training_.parameter_dtype, parameters);
        program_.init = {"init", 1, {}};
        builder_.begin(program_.init);
        take(BufferRole::workspace, Category::temporaries, DType::uint8, matrix_workspace);
        gradients_ = take(BufferRole::gradients, Category::gradients, training_.gradient_dtype, parameters);
        const LlmCActivations activations = llm_c_activations(*model_.decoder, training_);
        take(BufferRole::activation, Category::activations, training_.compute_dtype, activations.compute);
        take(BufferRole::activation, Category::logits, training_.compute_dtype, activations.output);
        take(BufferRole::activation, Category::activations, DType::fp32, activations.fp32);
        // Token ids and targets are 32-bit integers.
        take(BufferRole::batch, Category::activations, DType::fp32,
             2 * training_.micro_batch_size * training_.sequence_length);
        momentum_ = take(BufferRole::momentum, Category::optimizer_states, DType::fp32, own);
        variance_ = take(BufferRole::variance, Category::optimizer_states, DType::fp32, own);
        if (training_.master_dtype)
            master_ = take(BufferRole::master_weights, Category::master_weights, DType::fp32, own);
        build_step(own);
        program_.save = {"save", 1, {}};
        return std::move(program_);
    }

private:
    BufferId take(BufferRole role, Category category, DType dtype, std::uint64_t elements) {
        return builder_.allocate({.role = role,
                                  .category = category,
                                  .dtype = dtype,
                                  .owner = static_cast<std::uint32_t>(model_.parameters.size()),
                                  .elements = elements});
    }

    void build_step(std::uint64_t own) {
        const std::uint64_t micro_batches = training_.gradient_accumulation_steps;
        program_.step.reserve(2);
        if (micro_batches > 1) {
            program_.step.push_back({"micro_batch", micro_batches - 1, {}});
            run_micro_batch();
        }
        program_.step.push_back({"last_micro_batch_and_step", 1, {}});
        run_micro_batch();
        reduce_and_step(own);
        builder_.wait_for_all();
    }

    /// The operators of a walk without its allocations: their tensors are parts of what is there.
    void run_micro_batch() {
        Section& section = program_.step.back();
        builder_.begin(section);
        ActivationWalk walk(model_, training_, builder_, parameter_owners(model_), no_buffer);
        const ActivationWalk::Hooks hooks{.parameters = [this](std::uint32_t) { return values_; },
                                          .gradients = [this](std::uint32_t) { return gradients_; },
                                          .accumulate = [](std::uint32_t) { return false; }};
        walk.begin_micro_batch();
        const auto blocks = static_cast<std::uint32_t>(model_.blocks.size());
        for (std::uint32_t b = 0; b < blocks; ++b) walk.forward(b, hooks, {});
        for (std::uint32_t b = blocks; b-- > 0;) walk.backward(b, hooks, {}, true);
        std::erase_if(section.operations, [](const Operation& operation) {
            return std::holds_alternative<Allocate>(operation.body) ||
                   std::holds_alternative<Free>(operation.body);
        });
        const auto last = static_cast<OperationId>(section.operations.size() - 1);
        section.operations.push_back({Wait{}, Stream::compute, {last}});
        builder_.begin(section);
    }

    /// Gradients are reduced a tensor at a time, in place, and parameters gathered likewise.
    void reduce_and_step(std::uint64_t own) {
        const auto parts = [&](CollectiveKind kind, BufferId buffer, DType dtype) {
            for (std::uint32_t p = 0; p < model_.parameters.size(); ++p)
                if (!model_.parameters[p].shared_with)
                    builder_.on_stream(Stream::compute, Collective{.kind = kind,
                                                                   .group = GroupKind::world,
                                                                   .send = {buffer},
                                                                   .receive = {buffer},
                                                                   .dtype = dtype,
                                                                   .elements = model_.parameters[p].numel,
                                                                   .unit = p});
        };
        const bool sharded = shards_ > 1;
        if (training_.data_parallel > 1)
            parts(sharded ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce, gradients_,
                  training_.gradient_dtype);
        builder_.on_stream(Stream::compute,
                           OptimizerStep{.unit = static_cast<std::uint32_t>(model_.parameters.size()),
                                         .parameters = {values_},
                                         .gradients = {gradients_},
                                         .master = {master_},
                                         .momentum = {momentum_},
                                         .variance = {variance_},
                                         .elements = own});
        if (sharded) parts(CollectiveKind::all_gather, values_, training_.parameter_dtype);
    }

    const ModelSpec& model_;
    const TrainingConfig& training_;
    std::uint64_t shards_;
    StepProgram program_;
    ProgramBuilder builder_;
    BufferId values_ = no_buffer, gradients_ = no_buffer, momentum_ = no_buffer, variance_ = no_buffer,
             master_ = no_buffer;
};

}  // namespace

EngineOutput llm_c_engine(const Scenario& scenario) {
    check_llm_c(scenario);
    const ModelSpec& model = scenario.model;
    EngineOutput output{.rule_set = "llm.c f1e2ace", .layout = {.shard_group = 1, .units = {}}};
    for (const Parameter& parameter : model.parameters)
        output.layout.units.push_back({.name = parameter.name,
                                       .parameters = {},
                                       .numel = parameter.numel,
                                       .padded_numel = parameter.numel,
                                       .also_gathers = {}});
    output.layout.units.push_back({.name = "all tensors",
                                   .parameters = {},
                                   .numel = model.parameter_count(),
                                   .padded_numel = model.parameter_count(),
                                   .also_gathers = {}});
    if (scenario.training.zero_stage == 1 && llm_c_shards(model, scenario.training) == 1 &&
        scenario.training.data_parallel > 1)
        output.warnings.push_back(
            {"zero_disabled",
             fmt::format("{} parameters don't divide by {} ranks: llm.c goes on with stage 0",
                         model.parameter_count(), scenario.training.data_parallel)});
    output.programs.push_back(LlmCProgram(scenario).build());
    output.program_ranks.push_back({{0, scenario.world_size() - 1}});
    return output;
}

}  // namespace zeroplan
