#include "zeroplan/step_program.hpp"

#include <fmt/format.h>

#include "buffer_names.hpp"

namespace zeroplan {
namespace {

const std::string& block_name(std::uint32_t block, const ModelSpec& model) {
    return model.blocks[block].name;
}

struct Describe {
    const StepProgram& program;
    const ModelSpec& model;
    const ShardLayout& layout;

    std::string buffer(BufferId id) const { return describe(program.buffers[id], model, layout); }
    const std::string& unit(std::uint32_t index) const { return layout.units[index].name; }

    std::string operator()(const Allocate& op) const { return "allocate " + buffer(op.buffer); }
    std::string operator()(const Free& op) const { return "free " + buffer(op.buffer); }
    std::string operator()(const Collective& op) const {
        const bool of_activations = op.group == GroupKind::tensor_group ||
                                    op.group == GroupKind::context_group ||
                                    op.group == GroupKind::expert_group;
        return fmt::format("{} {}", to_string(op.kind), of_activations ? to_string(op.group) : unit(op.unit));
    }
    std::string operator()(const Accumulate& op) const { return "accumulate gradients of " + unit(op.unit); }
    std::string operator()(const Compute& op) const {
        const BlockKind& kind = model.block_kinds[model.blocks[op.block].kind];
        return fmt::format("{} {} {}", to_string(op.phase), block_name(op.block, model),
                           kind.operators[op.op].name);
    }
    std::string operator()(const OptimizerStep& op) const { return "optimizer step " + unit(op.unit); }
    std::string operator()(const LoadBatch&) const { return "load micro-batch"; }
    std::string operator()(const Wait&) const { return "wait"; }
    std::string operator()(const HostCopy& op) const {
        const bool of_block = op.role == BufferRole::activation;
        return fmt::format("copy {} of {} {}", to_string(op.role),
                           of_block ? block_name(op.owner, model) : unit(op.owner), to_string(op.path));
    }
    std::string operator()(const HostStep& op) const { return "optimizer step on the host " + unit(op.unit); }
    std::string operator()(const Transfer& op) const {
        const bool gradients = op.channel % 2 == 1;
        return fmt::format("{} {} {} the {} stage", op.send ? "send" : "receive",
                           gradients ? "gradients" : "activations", op.send ? "to" : "from",
                           op.to_next == op.send ? "next" : "previous");
    }
};

}  // namespace

std::string_view to_string(Stream stream) {
    switch (stream) {
        case Stream::compute:
            return "compute";
        case Stream::gather:
            return "gather";
        case Stream::reduce:
            return "reduce";
        case Stream::exchange:
            return "exchange";
        case Stream::to_host:
            return "device to host";
        case Stream::to_device:
            return "host to device";
        case Stream::host:
            return "host";
        case Stream::nvme:
            return "nvme";
    }
    return "?";
}

std::string_view to_string(CopyPath path) {
    switch (path) {
        case CopyPath::to_host:
            return "to the host";
        case CopyPath::to_device:
            return "to the device";
        case CopyPath::to_nvme:
            return "to NVMe";
        case CopyPath::from_nvme:
            return "from NVMe";
    }
    return "?";
}

std::string_view to_string(GroupKind group) {
    switch (group) {
        case GroupKind::shard_group:
            return "shard group";
        case GroupKind::replica_group:
            return "replica group";
        case GroupKind::world:
            return "world";
        case GroupKind::tensor_group:
            return "tensor-parallel group";
        case GroupKind::context_group:
            return "context-parallel group";
        case GroupKind::expert_group:
            return "expert-parallel group";
        case GroupKind::expert_data_group:
            return "expert data-parallel group";
        case GroupKind::secondary_shard_group:
            return "secondary shard group";
        case GroupKind::embedding_group:
            return "embedding group";
    }
    return "?";
}

std::string_view to_string(CollectiveKind kind) {
    switch (kind) {
        case CollectiveKind::all_gather:
            return "all_gather";
        case CollectiveKind::reduce_scatter:
            return "reduce_scatter";
        case CollectiveKind::all_reduce:
            return "all_reduce";
        case CollectiveKind::broadcast:
            return "broadcast";
        case CollectiveKind::all_to_all:
            return "all_to_all";
    }
    return "?";
}

std::string_view to_string(ComputePhase phase) {
    switch (phase) {
        case ComputePhase::forward:
            return "forward";
        case ComputePhase::recompute:
            return "recompute";
        case ComputePhase::backward:
            return "backward";
    }
    return "?";
}

Bytes allocated_bytes(const Buffer& buffer) {
    return round_up(buffer.elements * Bytes{bytes_per_element(buffer.dtype)}, Bytes{arena_alignment});
}

std::string describe(const Operation& operation, const StepProgram& program, const ModelSpec& model,
                     const ShardLayout& layout) {
    return std::visit(Describe{program, model, layout}, operation.body);
}

std::string describe(const Buffer& buffer, const ModelSpec& model, const ShardLayout& layout) {
    return fmt::format("{} ({}, {})", tensor_name(buffer, model, layout), to_string(buffer.role),
                       to_string(buffer.dtype));
}

}  // namespace zeroplan
