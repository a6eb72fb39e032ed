#include "compute.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "activation.hpp"
#include "convert.hpp"
#include "linear.hpp"
#include "loss.hpp"
#include "zeroplan/error.hpp"

namespace zeroplan::runner {
namespace {

/// One compute operation with everything it refers to.
class Call {
public:
    const Block& block;
    const BlockKind& kind;
    const Operator& op;

    Call(const Compute& compute, const ModelSpec& model, const ShardLayout& layout,
         const BufferTable& buffers)
        : block(model.blocks.at(compute.block)),
          kind(model.block_kinds.at(block.kind)),
          op(kind.operators.at(compute.op)),
          compute_(compute),
          model_(model),
          layout_(layout),
          buffers_(buffers) {}

    BufferId find(ArgumentRole role, std::uint32_t index) const {
        for (const Argument& argument : compute_.arguments)
            if (argument.role == role && argument.index == index) return argument.buffer;
        return no_buffer;
    }
    bool has(ArgumentRole role, std::uint32_t index) const { return find(role, index) != no_buffer; }
    DType dtype(ArgumentRole role, std::uint32_t index) const {
        return buffers_.spec(required(role, index)).dtype;
    }
    void* at(ArgumentRole role, std::uint32_t index) const { return buffers_.memory(required(role, index)); }
    void* at_or_null(ArgumentRole role, std::uint32_t index) const {
        return has(role, index) ? at(role, index) : nullptr;
    }

    /// Position of a tensor among the saved ones, or none of them.
    std::optional<std::uint32_t> saved_position(std::uint32_t tensor) const {
        const auto found = std::find(op.saved.begin(), op.saved.end(), tensor);
        if (found == op.saved.end()) return std::nullopt;
        return static_cast<std::uint32_t>(found - op.saved.begin());
    }
    void* saved(std::uint32_t tensor) const {
        const auto position = saved_position(tensor);
        return position ? at(ArgumentRole::saved, *position) : nullptr;
    }

    /// Parameter `position` of the operator inside its unit's flat buffer (of values or gradients), or
    /// nullptr if the operator has no such parameter or the operation no such buffer.
    void* parameter(ArgumentRole role, std::size_t position) const {
        if (position >= op.parameters.size()) return nullptr;
        std::uint32_t parameter = block.parameters.at(op.parameters[position]);
        if (const auto owner = model_.parameters.at(parameter).shared_with) parameter = *owner;
        for (const Argument& argument : compute_.arguments) {
            if (argument.role != role) continue;
            for (const PlacedParameter& placed : layout_.units.at(argument.index).parameters)
                if (placed.parameter == parameter)
                    return element(buffers_.memory(argument.buffer), buffers_.spec(argument.buffer).dtype,
                                   placed.offset);
        }
        return nullptr;
    }

    std::span<float> workspace() const {
        const BufferId id = find(ArgumentRole::workspace, 0);
        if (id == no_buffer) return {};
        const Buffer& spec = buffers_.spec(id);
        return {static_cast<float*>(buffers_.memory(id)),
                spec.elements * bytes_per_element(spec.dtype) / sizeof(float)};
    }

    std::uint64_t width(std::uint32_t tensor) const { return kind.tensors.at(tensor).extent.per_token; }

private:
    BufferId required(ArgumentRole role, std::uint32_t index) const {
        const BufferId id = find(role, index);
        if (id == no_buffer)
            throw std::logic_error(fmt::format("operator {} of block {} lacks argument {} of role {}",
                                               op.name, block.name, index, static_cast<int>(role)));
        return id;
    }

    const Compute& compute_;
    const ModelSpec& model_;
    const ShardLayout& layout_;
    const BufferTable& buffers_;
};

void run_linear(const Call& call, const Compute& compute, const MicroBatch& batch) {
    const bool forward = compute.phase != ComputePhase::backward;
    const LinearShape shape{batch.samples, call.op.in_features, call.op.out_features,
                            call.dtype(forward ? ArgumentRole::input : ArgumentRole::grad_output, 0)};
    const void* weight = call.parameter(ArgumentRole::parameters, 0);
    if (forward)
        return linear_forward(shape, call.at(ArgumentRole::input, 0), weight,
                              call.parameter(ArgumentRole::parameters, 1), call.at(ArgumentRole::output, 0),
                              call.workspace());
    linear_backward(shape, call.at(ArgumentRole::grad_output, 0), call.saved(call.op.inputs[0]), weight,
                    {.x = call.at_or_null(ArgumentRole::grad_input, 0),
                     .weight = call.parameter(ArgumentRole::gradients, 0),
                     .bias = call.parameter(ArgumentRole::gradients, 1),
                     .accumulate = compute.accumulate || (compute.accumulate_after_first && !batch.is_first)},
                    call.workspace());
}

void run_activation(const Call& call, const Compute& compute, const MicroBatch& batch) {
    const std::size_t n = batch.samples * call.width(call.op.inputs[0]);
    if (compute.phase != ComputePhase::backward)
        return activation_forward(call.op.function, call.at(ArgumentRole::input, 0),
                                  call.at(ArgumentRole::output, 0), n, call.dtype(ArgumentRole::input, 0));
    const void* output = call.saved(call.op.outputs[0]);
    const void* input = call.saved(call.op.inputs[0]);
    const bool from_output = input == nullptr;
    activation_backward(call.op.function, call.at(ArgumentRole::grad_output, 0), from_output ? output : input,
                        from_output, call.at(ArgumentRole::grad_input, 0), n,
                        call.dtype(ArgumentRole::grad_output, 0));
}

void run_loss(const Call& call, const Compute& compute, MicroBatch& batch) {
    const bool mse = call.op.kind == OperatorKind::mean_squared_error;
    const std::size_t rows = batch.samples, columns = call.width(call.op.inputs[0]);
    if (compute.phase == ComputePhase::backward) {
        const void* x = call.saved(call.op.inputs[0]);
        const void* target = call.saved(call.op.inputs[1]);
        void* gradient = call.at(ArgumentRole::grad_input, 0);
        const DType dtype = call.dtype(ArgumentRole::grad_input, 0);
        if (mse) return mse_backward(x, target, gradient, rows, columns, dtype);
        return cross_entropy_backward(x, static_cast<const std::int64_t*>(target), gradient, rows, columns,
                                      dtype);
    }
    const void* x = call.at(ArgumentRole::input, 0);
    const void* target = call.at(ArgumentRole::input, 1);
    const DType dtype = call.dtype(ArgumentRole::input, 0);
    const double sum =
        mse ? mse_forward(x, target, rows, columns, dtype)
            : cross_entropy_forward(x, static_cast<const std::int64_t*>(target), rows, columns, dtype);
    const float mean = rows == 0 ? 0.0F : static_cast<float>(sum / static_cast<double>(rows));
    narrow(&mean, call.at(ArgumentRole::output, 0), call.dtype(ArgumentRole::output, 0), 1);
    if (compute.phase == ComputePhase::forward) batch.loss_sum += sum;
}

/// A loss that hands its prediction and target to backward and makes nothing else of the batch's size.
bool is_plain_loss(const BlockKind& kind, const Operator& op) {
    return op.inputs.size() == 2 && op.outputs.size() == 1 && op.parameters.empty() &&
           op.saved == op.inputs && kind.tensors[op.outputs[0]].extent.per_token == 0;
}

bool is_supported(const BlockKind& kind, const Operator& op) {
    switch (op.kind) {
        case OperatorKind::linear:
        case OperatorKind::activation:
            return true;
        case OperatorKind::mean_squared_error:
        case OperatorKind::cross_entropy:
            return is_plain_loss(kind, op);
        default:
            return false;
    }
}

}  // namespace

void check_operators(const ModelSpec& model) {
    constexpr const char* way_out =
        "the host runner trains plain stacks (\"layers\" in the scenario's model); plan and "
        "sim know this model";
    for (const Block& block : model.blocks) {
        const BlockKind& kind = model.block_kinds[block.kind];
        for (const Operator& op : kind.operators)
            if (!is_supported(kind, op))
                throw Error(ErrorCode::not_supported,
                            fmt::format("the host runner can't execute operator '{}' ({}) of {}", op.name,
                                        to_string(op.kind), block.name),
                            way_out, {"", "/model"});
    }
    if (model.batch != BatchKind::features)
        throw Error(ErrorCode::not_supported, "the host runner has no token data", way_out, {"", "/model"});
}

void execute(const Compute& compute, const ModelSpec& model, const ShardLayout& layout,
             const BufferTable& buffers, MicroBatch& batch) {
    const Call call(compute, model, layout, buffers);
    switch (call.op.kind) {
        case OperatorKind::linear:
            return run_linear(call, compute, batch);
        case OperatorKind::activation:
            return run_activation(call, compute, batch);
        case OperatorKind::mean_squared_error:
        case OperatorKind::cross_entropy:
            return run_loss(call, compute, batch);
        default:
            throw std::logic_error(fmt::format("operator '{}' was let through", call.op.name));
    }
}

}  // namespace zeroplan::runner
