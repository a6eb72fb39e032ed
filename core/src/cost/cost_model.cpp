#include "zeroplan/cost_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cost/constants.hpp"
#include "cost/largest_board.hpp"
#include "cost/matrix_product.hpp"
#include "cost/nccl_tables.hpp"

namespace zeroplan {
namespace {

/// Matrix products run in `compute`, but attention has no fp8 kernels here: bf16.
DType attention_dtype(DType compute) {
    return compute == DType::fp8 ? DType::bf16 : compute;
}

double require_rate(const GpuSpec& gpu, DType dtype) {
    const double rate = peak_flop_per_s(gpu, dtype);
    if (rate > 0) return rate;
    const DType fallback = peak_flop_per_s(gpu, DType::fp16) > 0 ? DType::fp16 : DType::fp32;
    throw Error(ErrorCode::not_supported,
                fmt::format("compute_dtype is {}, but the GPU {} has no {} matrix units", to_string(dtype),
                            gpu.name, to_string(dtype)),
                fmt::format("train in {}, or choose another GPU", to_string(fallback)),
                {"", "/training/compute_dtype"});
}

bool is_matrix_product(OperatorKind kind) {
    return kind == OperatorKind::linear || kind == OperatorKind::attention_scores ||
           kind == OperatorKind::attention_values;
}

/// Kernels that one operator starts: a matrix product's backward is two products, each parameter beside the
/// weight one reduction; fused attention's backward has a preparing kernel.
double kernel_count(const Operator& op, ComputePhase phase) {
    if (phase != ComputePhase::backward) return 1;
    if (is_matrix_product(op.kind)) return op.parameters.size() > 1 ? 3 : 2;
    return op.kind == OperatorKind::attention || op.kind == OperatorKind::norm ? 2 : 1;
}

/// Share of the clock that a power limit leaves to kernels that load the whole GPU.
double clock_share(const ClusterSpec& cluster) {
    if (!cluster.power_limit_watts) return 1;
    const double share =
        *cluster.power_limit_watts / cost::largest_board(cluster.gpu.compute_capability).watts;
    return share >= 1 ? 1 : std::pow(share, cost::constants(cluster.calibration).power_exponent.value);
}

/// Weights of a linear; experts have one each.
double product_count(const Operator& op, const ModelSpec& model, const Block& block) {
    double count = 0;
    for (const std::uint32_t position : op.parameters)
        if (model.parameters[block.parameters[position]].shape.size() == 2) ++count;
    return std::max(1.0, count);
}

/// The collective's own kernel writes the result.
bool only_communicates(const Operator& op) {
    return !op.collectives.empty() && (op.kind == OperatorKind::cast || op.kind == OperatorKind::elementwise);
}

}  // namespace

CostModel::CostModel(const ModelSpec& model, const TrainingConfig& training, const ClusterSpec& cluster,
                     const ShardLayout& layout, const StepProgram& program, const WorkScale& scale)
    : model_(model),
      training_(training),
      layout_(layout),
      program_(program),
      constants_(&cost::constants(cluster.calibration)) {
    const cost::Constants& c = *constants_;
    const GpuSpec& gpu = cluster.gpu;
    const double attention = require_rate(gpu, attention_dtype(training.compute_dtype));
    const auto generation = static_cast<std::size_t>(nccl::generation(gpu.compute_capability));
    const double gemm = (gpu.is_host ? c.host_gemm_efficiency : c.gemm_efficiency[generation]).value;
    const double clock = clock_share(cluster);
    const double product_share = gemm * clock / scale.products;
    const double attention_rate = attention * clock / scale.attention;
    rates_.linear_flop_per_s = require_rate(gpu, training.compute_dtype) * product_share;
    rates_.wide_linear_flop_per_s = attention * product_share;
    const double bf16 = peak_flop_per_s(gpu, DType::bf16);
    rates_.orthogonalising_flop_per_s = (bf16 > 0 ? bf16 : attention) * product_share;
    fp8_cast_bytes_ = cost::fp8_cast_bytes(training.fp8_json);
    rates_.attention_flop_per_s = attention_rate * c.attention_forward_efficiency[generation].value;
    rates_.attention_backward_flop_per_s = attention_rate * c.attention_backward_efficiency[generation].value;
    rates_.memory_bytes_per_s = gpu.hbm_bytes_per_s * c.memory_efficiency.value / scale.memory;
    rates_.kernel_start_s = gpu.is_host ? c.host_call_s.value : c.kernel_start_s.value;
    const double upload = gpu.is_host ? gpu.hbm_bytes_per_s : cluster.host.pcie_bytes_per_s;
    rates_.upload_bytes_per_s = upload * c.upload_efficiency.value;
    set_offload_rates(cluster, scale.offload);
    if (!(gpu.hbm_bytes_per_s > 0))
        throw Error(ErrorCode::invalid_input, fmt::format("the GPU {} has no memory rate", gpu.name),
                    "give hbm_bytes_per_s", {"", "/cluster/gpu"});
}

double CostModel::buffer_bytes(BufferId id) const {
    const Buffer& buffer = program_.buffers[id];
    return static_cast<double>(buffer.elements) * static_cast<double>(bytes_per_element(buffer.dtype));
}

double CostModel::operand_elements(const Operand& operand) const {
    if (operand.buffer == no_buffer) return 0;
    const auto elements = static_cast<double>(program_.buffers[operand.buffer].elements);
    return operand.own_slice ? elements / static_cast<double>(layout_.shard_group) : elements;
}

double CostModel::parameter_elements(const Compute& compute, const Operator& op) const {
    double sum = 0;
    for (const std::uint32_t position : op.parameters)
        sum +=
            static_cast<double>(model_.parameters[model_.blocks[compute.block].parameters[position]].numel);
    return sum;
}

/// Bytes that one argument moves. Tensors are read or written once; a workspace is written and read. Of a
/// unit's flat buffer only the operator's own parameters move, of an embedding table only the rows looked up.
double CostModel::argument_bytes(const Compute& compute, const Operator& op, const Argument& argument) const {
    const auto element = static_cast<double>(bytes_per_element(program_.buffers[argument.buffer].dtype));
    switch (argument.role) {
        case ArgumentRole::input:
        case ArgumentRole::output:
        case ArgumentRole::saved:
        case ArgumentRole::grad_output:
        case ArgumentRole::grad_input:
            return buffer_bytes(argument.buffer);
        case ArgumentRole::workspace:
            // Matrix libraries are handed one workspace of the engine's and touch little of it.
            return is_matrix_product(op.kind) ? 0 : 2 * buffer_bytes(argument.buffer);
        case ArgumentRole::parameters:
            return op.kind == OperatorKind::embedding ? 0 : parameter_elements(compute, op) * element;
        case ArgumentRole::gradients:
            return (compute.accumulate || compute.accumulate_after_first ? 2 : 1) *
                   parameter_elements(compute, op) * element;
    }
    return 0;
}

double CostModel::flop_rate(const Operator& op, ComputePhase phase, bool fp8) const {
    if (op.kind != OperatorKind::attention)
        return fp8 ? rates_.linear_flop_per_s : rates_.wide_linear_flop_per_s;
    return phase == ComputePhase::backward ? rates_.attention_backward_flop_per_s
                                           : rates_.attention_flop_per_s;
}

/// `flops` of the forward pass tell the rows. Backward is a product for the input's gradient and, unless the
/// weight is frozen, one for the weight's.
double CostModel::product_efficiency(const Operator& op, ComputePhase phase, double products) const {
    if (op.kind != OperatorKind::linear || op.in_features == 0 || op.out_features == 0) return 1;
    const auto in = static_cast<double>(op.in_features), out = static_cast<double>(op.out_features);
    const double rows = product_rows(op, products);
    if (!(rows > 0)) return 1;
    if (phase != ComputePhase::backward) return cost::shape_efficiency({rows, out, in}, *constants_);
    const double input_gradient = cost::shape_efficiency({rows, in, out}, *constants_);
    if (op.backward_flops.per_token <= op.forward_flops.per_token) return input_gradient;
    return 2 / (1 / input_gradient + 1 / cost::shape_efficiency({out, in, rows}, *constants_));
}

double CostModel::product_rows(const Operator& op, double products) const {
    const double flops = operations(op.forward_flops, training_.micro_batch_size, training_.sequence_length);
    return flops /
           (2 * static_cast<double>(op.in_features) * static_cast<double>(op.out_features) * products);
}

/// Forward casts input and weight, backward the gradient that comes in.
double CostModel::cast_seconds(const Operator& op, ComputePhase phase, double products) const {
    const auto in = static_cast<double>(op.in_features), out = static_cast<double>(op.out_features);
    const double rows = product_rows(op, products);
    const double elements = products * (phase == ComputePhase::backward ? rows * out : rows * in + in * out);
    return elements * fp8_cast_bytes_ / rates_.memory_bytes_per_s;
}

WorkCost CostModel::roofline(double flops, double flop_per_s, double bytes, double kernels) const {
    const double products_s = flops / flop_per_s, memory_s = bytes / rates_.memory_bytes_per_s;
    const bool by_memory = memory_s > products_s;
    return {.flops = flops,
            .bytes = bytes,
            .seconds = std::max(products_s, memory_s) + kernels * rates_.kernel_start_s,
            .multiprocessor_s = by_memory ? 0 : products_s,
            .memory_s = by_memory ? memory_s : 0};
}

WorkCost CostModel::cost(const Compute& compute) const {
    const Operator& op = model_.block_kinds[model_.blocks[compute.block].kind].operators[compute.op];
    if (only_communicates(op)) return {};
    const Flops& per_batch = compute.phase == ComputePhase::backward ? op.backward_flops : op.forward_flops;
    double flops = operations(per_batch, training_.micro_batch_size, training_.sequence_length);
    // The counts are those of the full square, as model flops are; every model so far is causal.
    if (op.kind == OperatorKind::attention) flops *= constants_->causal_attention_share.value;
    double bytes = 0;
    for (const Argument& argument : compute.arguments) bytes += argument_bytes(compute, op, argument);
    if (op.kind == OperatorKind::embedding && compute.phase != ComputePhase::backward)
        for (const Argument& argument : compute.arguments)
            if (argument.role == ArgumentRole::output) bytes += buffer_bytes(argument.buffer);
    const Block& block = model_.blocks[compute.block];
    const double products = product_count(op, model_, block);
    // Engines keep the output layer, which is no transformer layer's, out of fp8.
    const bool fp8 = training_.compute_dtype == DType::fp8 && op.kind == OperatorKind::linear &&
                     model_.block_kinds[block.kind].is_layer;
    const double rate = flop_rate(op, compute.phase, fp8) * product_efficiency(op, compute.phase, products);
    WorkCost cost = roofline(flops, rate, bytes, kernel_count(op, compute.phase));
    if (!fp8) return cost;
    const double casts_s = cast_seconds(op, compute.phase, products);
    cost.seconds += casts_s;
    cost.memory_s += casts_s;
    return cost;
}

WorkCost CostModel::cost(const OptimizerStep& step) const {
    const auto part = [&](const Operand& operand, double passes) {
        if (operand.buffer == no_buffer) return 0.0;
        const DType dtype = program_.buffers[operand.buffer].dtype;
        return passes * static_cast<double>(step.elements) * static_cast<double>(bytes_per_element(dtype));
    };
    const double parameter_passes = step.master.buffer == no_buffer ? 2 : 1;
    const double bytes = part(step.parameters, parameter_passes) + part(step.gradients, 1) +
                         part(step.master, 2) + part(step.momentum, 2) + part(step.variance, 2);
    WorkCost cost = roofline(0, 1, bytes, 1);
    for (const Orthogonalised& matrix : step.orthogonalised) add_newton_schulz(cost, matrix);
    return cost;
}

/// Three products an iteration.
void CostModel::add_newton_schulz(WorkCost& cost, const Orthogonalised& matrix) const {
    const auto rows = static_cast<double>(matrix.rows), columns = static_cast<double>(matrix.columns);
    const double iterations = cost::newton_schulz_steps * static_cast<double>(matrix.count);
    const double effective = cost::newton_schulz_effective_flops(rows, columns, *constants_);
    cost.flops += iterations * cost::newton_schulz_flops(rows, columns);
    const double products_s = iterations * effective / rates_.orthogonalising_flop_per_s;
    cost.seconds += products_s + iterations * 3 * rates_.kernel_start_s;
    cost.multiprocessor_s += products_s;
}

WorkCost CostModel::cost(const Accumulate& accumulate) const {
    // One of the two may be a place in a flat buffer: as much moves as the smaller holds, unless both are.
    const double elements = accumulate.elements > 0 ? static_cast<double>(accumulate.elements)
                                                    : std::min(operand_elements(accumulate.from),
                                                               operand_elements(accumulate.to));
    const auto width = [this](const Operand& operand) {
        return static_cast<double>(bytes_per_element(program_.buffers[operand.buffer].dtype));
    };
    return roofline(0, 1, elements * (width(accumulate.from) + 2 * width(accumulate.to)), 1);
}

WorkCost CostModel::cost(const LoadBatch& load) const {
    double bytes = 0;
    for (const BufferId buffer : {load.batch, load.labels})
        if (buffer != no_buffer) bytes += buffer_bytes(buffer);
    const double seconds = rates_.upload_bytes_per_s > 0 ? bytes / rates_.upload_bytes_per_s : 0;
    return {.bytes = bytes, .seconds = seconds};
}

}  // namespace zeroplan
