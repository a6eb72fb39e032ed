#pragma once
#include <map>
#include <string>

#include "zeroplan/plan.hpp"

/// Plans made by hand for tests of time: durations are round numbers.
namespace zeroplan::test {

/// A GPU whose launch overheads and efficiencies are undone by choosing sizes: `seconds(n)` elements below
/// take n seconds exactly.
inline GpuSpec test_gpu() {
    GpuSpec gpu;
    gpu.name = "test-gpu";
    gpu.memory_usable = Bytes{80'000'000'000ULL};
    gpu.hbm_bytes_per_s = 1e12;
    gpu.fp32_flop_per_s = 1e13;
    gpu.bf16_flop_per_s = 1e14;
    gpu.link_bytes_per_s = 450e9;
    gpu.link = "nvlink4";
    gpu.compute_capability = 90;
    return gpu;
}

inline ClusterSpec test_cluster(std::uint64_t nodes, std::uint64_t gpus_per_node = 8) {
    ClusterSpec cluster;
    cluster.nodes = nodes;
    cluster.gpus_per_node = gpus_per_node;
    cluster.gpus_used = nodes * gpus_per_node;
    cluster.gpu = test_gpu();
    cluster.intra_node = IntraNode::nvswitch;
    if (nodes > 1) cluster.inter_node = {InterNodeKind::infiniband, 50e9};
    cluster.host.pcie_bytes_per_s = 64e9;
    return cluster;
}

/// One block kind, "layer", with one operator: linear 1000 → 1000 without bias, batch of 1 sequence of
/// 1000 tokens: 2e9 flops forward, 4e9 backward.
inline ModelSpec test_model(std::uint32_t blocks = 1) {
    ModelSpec model;
    model.name = "test";
    BlockKind layer;
    layer.name = "layer";
    layer.is_layer = true;
    layer.tensors = {{"input", {.per_token = 1000}}, {"output", {.per_token = 1000}}};
    layer.output = 1;
    layer.parameter_count = 1;
    Operator linear;
    linear.name = "linear";
    linear.kind = OperatorKind::linear;
    linear.inputs = {0};
    linear.outputs = {1};
    linear.saved = {0};
    linear.parameters = {0};
    linear.forward_flops = {.per_token = 2'000'000};
    linear.backward_flops = {.per_token = 4'000'000};
    linear.in_features = linear.out_features = 1000;
    layer.operators = {linear};
    model.block_kinds = {layer};
    for (std::uint32_t b = 0; b < blocks; ++b) {
        model.parameters.push_back({"layers." + std::to_string(b) + ".weight", {1000, 1000}, 1'000'000});
        model.blocks.push_back({"layers." + std::to_string(b), 0, {b}});
    }
    return model;
}

/// A plan of one program whose step is `sections`, on `cluster`, shard group = all ranks.
inline Plan test_plan(const ClusterSpec& cluster, std::vector<Section> sections, std::vector<Buffer> buffers,
                      std::uint32_t blocks = 1) {
    Plan plan;
    plan.scenario.model = test_model(blocks);
    plan.scenario.cluster = cluster;
    plan.scenario.training.data_parallel = cluster.gpus_used;
    plan.scenario.training.shard_group = cluster.gpus_used;
    plan.scenario.training.sequence_length = 1000;
    plan.layout.shard_group = cluster.gpus_used;
    for (std::uint32_t b = 0; b < blocks; ++b)
        plan.layout.units.push_back(
            {plan.scenario.model.blocks[b].name, b, {{b, 0}}, 1'000'000, 1'000'000, {}});
    StepProgram program;
    program.buffers = std::move(buffers);
    program.step = std::move(sections);
    plan.programs = {std::move(program)};
    RankGroup group;
    group.ranks = {{0, cluster.gpus_used - 1}};
    plan.rank_groups = {group};
    return plan;
}

/// Constants with which collectives take nothing of a GPU.
inline std::map<std::string, double> nothing_taken() {
    return {{"collective_blocks_per_multiprocessor", 1e12},
            {"gather_memory_accesses", 0},
            {"reduce_memory_accesses", 0}};
}

inline Operation on(Stream stream, OperationBody body, std::vector<OperationId> waits = {}) {
    return {std::move(body), stream, std::move(waits)};
}
inline Operation host(OperationBody body, std::vector<OperationId> waits = {}) {
    return {std::move(body), Stream::compute, std::move(waits)};
}
inline Collective all_gather(std::uint64_t elements, GroupKind group = GroupKind::shard_group) {
    Collective c;
    c.kind = CollectiveKind::all_gather;
    c.group = group;
    c.dtype = DType::bf16;
    c.elements = elements;
    return c;
}
inline Collective reduce_scatter(std::uint64_t elements, GroupKind group = GroupKind::shard_group) {
    Collective c = all_gather(elements, group);
    c.kind = CollectiveKind::reduce_scatter;
    return c;
}

}  // namespace zeroplan::test
