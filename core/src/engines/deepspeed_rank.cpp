#include "engines/deepspeed_rank.hpp"

#include <algorithm>

#include "engines/deepspeed_states.hpp"
#include "engines/muon.hpp"
#include "engines/parameter_storage.hpp"

namespace zeroplan {

TiedGradient tied_gradient(const DeepSpeedRank& rank, BufferId buffer, DType dtype) {
    return {*rank.tied_copy, buffer, dtype, rank.model.parameters[*rank.tied_copy].numel};
}

Buffer flat_buffer(const DeepSpeedRank& rank, BufferRole role, Category category, DType dtype,
                   std::uint64_t elements) {
    return {.role = role,
            .category = category,
            .dtype = dtype,
            .owner = flat_unit(rank.model),
            .elements = elements};
}

DeepSpeedParameters::DeepSpeedParameters(const DeepSpeedRank& rank, ProgramBuilder& builder)
    : rank_(rank), builder_(builder), values_(rank.model.parameters.size(), no_buffer) {}

void DeepSpeedParameters::load() {
    for (std::uint32_t p = 0; p < values_.size(); ++p) {
        const Parameter& parameter = rank_.model.parameters[p];
        if (parameter.shared_with) continue;
        const StoredAs as = stored_as(parameter, rank_.training.parameter_dtype);
        Buffer values{.role = BufferRole::parameters,
                      .category = Category::parameters,
                      .dtype = as.dtype,
                      .owner = p,
                      .elements = as.elements(parameter.numel)};
        values_[p] = builder_.allocate(values);
        if (const std::uint64_t bytes = statistics_bytes(parameter); bytes > 0) {
            values.elements = bytes;
            builder_.allocate(values);
        }
    }
}

void DeepSpeedParameters::flatten(std::uint32_t copies) {
    const auto free_originals = [&] {
        for (const PlacedParameter& placed : rank_.group.parameters) builder_.free(values_[placed.parameter]);
    };
    if (rank_.options.rules.flattens_on_host && copies == 0) free_originals();
    std::vector<BufferId> clones;
    for (std::uint32_t c = 0; c < copies; ++c)
        for (const PlacedParameter& placed : rank_.group.parameters)
            clones.push_back(builder_.allocate(builder_.buffer(values_[placed.parameter])));
    flat_ = builder_.allocate(flat_buffer(rank_, BufferRole::parameters, Category::parameters,
                                          rank_.training.parameter_dtype, rank_.group.padded_numel));
    for (const BufferId clone : clones) builder_.free(clone);
    if (!rank_.options.rules.flattens_on_host || copies != 0) free_originals();
    for (const PlacedParameter& placed : rank_.group.parameters) values_[placed.parameter] = flat_;
}

std::vector<BufferId> declare_flat_states(const DeepSpeedRank& rank, ProgramBuilder& builder,
                                          std::uint64_t elements,
                                          const std::vector<std::uint32_t>& parameters) {
    std::vector<BufferId> states;
    if (offloads_optimizer(rank) && rank.training.zero_stage < 3) return states;
    for (const OptimizerTensor& tensor : flat_states(rank, elements, parameters))
        states.push_back(
            builder.declare(flat_buffer(rank, states.empty() ? BufferRole::momentum : BufferRole::variance,
                                        Category::optimizer_states, tensor.dtype, tensor.elements)));
    return states;
}

void flat_optimizer_step(const DeepSpeedRank& rank, ProgramBuilder& builder, BufferId master,
                         BufferId gradients, const std::vector<BufferId>& states, std::uint64_t elements,
                         const std::vector<Orthogonalised>& matrices) {
    std::vector<BufferId> temporaries;
    if (const std::uint64_t workspace = orthogonalising_workspace(matrices); workspace > 0)
        temporaries.push_back(builder.allocate(
            flat_buffer(rank, BufferRole::workspace, Category::temporaries, DType::bf16, workspace)));
    for (const OptimizerTensor& tensor : step_temporaries(rank.training, {elements}).all_at_once)
        temporaries.push_back(builder.allocate(
            flat_buffer(rank, BufferRole::workspace, Category::temporaries, tensor.dtype, tensor.elements)));
    const auto state = [&](std::size_t from_the_end) {
        return states.size() < from_the_end ? Operand{} : Operand{states[states.size() - from_the_end]};
    };
    builder.on_stream(Stream::compute, OptimizerStep{.unit = flat_unit(rank.model),
                                                     .parameters = {master},
                                                     .gradients = {gradients},
                                                     .master = {master},
                                                     .momentum = state(2),
                                                     .variance = state(1),
                                                     .elements = elements,
                                                     .orthogonalised = matrices});
    for (const BufferId buffer : temporaries) builder.free(buffer);
}

void gather_partitions(const DeepSpeedRank& rank, ProgramBuilder& builder, BufferId flat) {
    if (rank.ranks == 1) return;
    const std::uint64_t numel = rank.group.padded_numel;
    const std::uint64_t shards = rank.options.rules.gathers_lists
                                     ? std::max<std::uint64_t>(1, numel / rank.options.allgather_bucket_size)
                                     : 1;
    for (std::uint64_t shard = 0; shard < shards; ++shard) {
        const std::uint64_t part = numel / shards;
        BufferId joined = no_buffer;
        if (rank.options.rules.gathers_lists)
            joined = builder.allocate(flat_buffer(rank, BufferRole::gathered_parameters,
                                                  Category::communication_buffers,
                                                  rank.training.parameter_dtype, part));
        builder.on_stream(Stream::compute, Collective{.kind = CollectiveKind::all_gather,
                                                      .group = GroupKind::shard_group,
                                                      .send = {flat, true},
                                                      .receive = {flat, false},
                                                      .dtype = rank.training.parameter_dtype,
                                                      .elements = part,
                                                      .unit = flat_unit(rank.model)});
        if (joined != no_buffer) builder.free(joined);
    }
}

void take_and_give_back(ProgramBuilder& builder, Category category, DType dtype, std::uint64_t elements) {
    if (elements == 0) return;
    builder.free(builder.allocate(
        {.role = BufferRole::workspace, .category = category, .dtype = dtype, .elements = elements}));
}

}  // namespace zeroplan
