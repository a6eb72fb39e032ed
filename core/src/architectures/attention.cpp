#include "architectures/attention.hpp"

namespace zeroplan {
namespace {

using TensorId = BlockBuilder::TensorId;

TensorId fused_attention(BlockBuilder& block, const QueryKeyValue& qkv, const AttentionShape& shape,
                         const LoweringOptions& options, const ScoreOptions& how) {
    const TensorId out = block.tensor("attention", shape.output_width());
    const std::uint64_t products = shape.query_width() + shape.output_width();
    const TensorId log_sum_exp = block.tensor("attention.log_sum_exp", shape.heads, TensorDType::fp32);
    std::vector<TensorId> inputs = qkv.tensors;
    if (how.bias) inputs.push_back(*how.bias);
    std::vector<TensorId> saved = inputs;
    saved.insert(saved.end(), {out, log_sum_exp});
    block.add({.name = "attention",
               .kind = OperatorKind::attention,
               .inputs = std::move(inputs),
               .outputs = {out, log_sum_exp},
               .saved = std::move(saved),
               .parameters = how.sinks,
               .forward_flops = {.per_token_pair = 2 * products},
               .backward_flops = {.per_token_pair = 5 * products},  // scores are computed again
               // FlashAttention-2 sums the queries' gradient in fp32: twice the elements of a 16-bit dtype.
               .backward_workspace = {.per_token = (options.upcasts() ? 2 : 1) * shape.query_width()}});
    return out;
}

/// k or v, or the output of `op` that repeats it for every head, which then is what backward reads.
TensorId shared_operand(BlockBuilder& block, Operator& op, TensorId operand, const AttentionShape& shape,
                        bool repeats) {
    if (!repeats) return operand;
    op.outputs.push_back(block.add_tensor({.name = op.name + ".repeated",
                                           .extent = {.per_token = shape.query_width()},
                                           .needs_gradient = false}));
    op.backward_workspace.per_token =
        shape.query_width();  // its gradient, before that is summed over the heads
    return op.outputs.back();
}

TensorId eager_scores(BlockBuilder& block, const QueryKeyValue& qkv, const AttentionShape& shape,
                      bool repeats) {
    const bool packed = qkv.tensors.size() == 1;
    const TensorId query = qkv.tensors.front();
    Operator op{.name = "attention.scores",
                .kind = OperatorKind::attention_scores,
                .inputs = {query},
                .outputs = {block.add_tensor(
                    {.name = "attention.scores", .extent = {.per_token_pair = shape.heads}})},
                .saved = {query},
                .forward_flops = {.per_token_pair = 2 * shape.query_width()},
                .backward_flops = {.per_token_pair = 4 * shape.query_width()},
                .attention_core = true};
    if (!packed) {
        op.inputs.push_back(qkv.tensors[1]);
        op.saved.push_back(shared_operand(block, op, qkv.tensors[1], shape, repeats));
    }
    return block.add(std::move(op)).outputs[0];
}

TensorId biased(BlockBuilder& block, TensorId scores, TensorId bias, const Extent& matrix) {
    const TensorId out = block.add_tensor({.name = "attention.biased", .extent = matrix});
    block.add({.name = "attention.bias",
               .kind = OperatorKind::residual_add,
               .inputs = {scores, bias},
               .outputs = {out},
               .forward_flops = {.per_token_pair = matrix.per_token_pair},
               .attention_core = true});
    return out;
}

/// cap · tanh(scores / cap): backward reads the tanh.
TensorId capped(BlockBuilder& block, TensorId scores, const Extent& matrix) {
    const TensorId out = block.add_tensor({.name = "attention.capped", .extent = matrix});
    const TensorId tanh =
        block.add_tensor({.name = "attention.capped.tanh", .extent = matrix, .needs_gradient = false});
    block.add({.name = "attention.cap",
               .kind = OperatorKind::elementwise,
               .inputs = {scores},
               .outputs = {out, tanh},
               .saved = {tanh},
               .forward_flops = {.per_token_pair = 3 * matrix.per_token_pair},
               .backward_flops = {.per_token_pair = 3 * matrix.per_token_pair},
               .attention_core = true});
    return out;
}

/// torch.cat of the scores and a column of sinks, less each row's largest (GptOss's eager_attention_forward).
TensorId with_sinks(BlockBuilder& block, TensorId scores, const ScoreOptions& how, const Extent& wider) {
    // Under autocast torch.cat takes the widest dtype, that of the fp32 sinks.
    const TensorId out = block.add_tensor(
        {.name = "attention.with_sinks", .extent = wider, .dtype = block.style().residual()});
    const std::uint64_t factor = block.style().autocast ? 2 : 1;
    const Extent joined{.per_token = factor * wider.per_token,
                        .per_token_pair = factor * wider.per_token_pair};
    block.add({.name = "attention.sinks",
               .kind = OperatorKind::elementwise,
               .inputs = {scores},
               .outputs = {out},
               .parameters = how.sinks,
               .forward_flops = {.per_token_pair = 2 * wider.per_token_pair},
               .backward_flops = {.per_token_pair = 2 * wider.per_token_pair},
               .forward_workspace = joined,
               .backward_workspace = joined,
               .attention_core = true,
               .saves_parameters = false});
    return out;
}

/// The weights without the sinks' column, which is no slice that a product can read.
TensorId without_sinks(BlockBuilder& block, TensorId weights, const Extent& matrix) {
    const TensorId out = block.add_tensor(
        {.name = "attention.without_sinks", .extent = matrix, .dtype = block.style().residual()});
    block.add({.name = "attention.without_sinks",
               .kind = OperatorKind::elementwise,
               .inputs = {weights},
               .outputs = {out},
               .attention_core = true});
    return out;
}

TensorId eager_softmax(BlockBuilder& block, TensorId scores, const Extent& matrix, bool keeps_fp32) {
    const bool autocast = block.style().autocast;
    const TensorId weights = block.add_tensor({.name = "attention.softmax",
                                               .extent = matrix,
                                               .dtype = autocast ? TensorDType::fp32 : TensorDType::compute});
    Operator op{.name = "attention.softmax",
                .kind = OperatorKind::softmax,
                .inputs = {scores},
                .outputs = {weights},
                .saved = {weights},
                .forward_flops = {.per_token_pair = 5 * matrix.per_token_pair},
                .backward_flops = {.per_token_pair = 4 * matrix.per_token_pair},
                .attention_core = true};
    if (keeps_fp32 && !autocast) {
        op.outputs.push_back(block.add_tensor({.name = "attention.softmax.fp32",
                                               .extent = matrix,
                                               .dtype = TensorDType::fp32,
                                               .needs_gradient = false}));
        op.saved = {op.outputs.back()};
    }
    block.add(std::move(op));
    return weights;
}

/// Not part of what is dropped: the projection that follows saves its output.
TensorId eager_values(BlockBuilder& block, TensorId weights, TensorId value, const AttentionShape& shape,
                      bool repeats) {
    Operator op{.name = "attention.values",
                .kind = OperatorKind::attention_values,
                .inputs = {weights, value},
                .outputs = {block.tensor("attention", shape.output_width())},
                .saved = {weights},
                .forward_flops = {.per_token_pair = 2 * shape.output_width()},
                .backward_flops = {.per_token_pair = 4 * shape.output_width()}};
    op.saved.push_back(shared_operand(block, op, value, shape, repeats));
    return block.add(std::move(op)).outputs[0];
}

TensorId eager_attention(BlockBuilder& block, const QueryKeyValue& qkv, const AttentionShape& shape,
                         const LoweringOptions& options, const ScoreOptions& how) {
    const bool unfused = options.kernels == Kernels::eager;
    const bool repeats = unfused && shape.kv_heads != shape.heads;
    const Extent matrix{.per_token_pair = shape.heads};
    TensorId scores = eager_scores(block, qkv, shape, repeats);
    if (how.bias) scores = biased(block, scores, *how.bias, matrix);
    if (how.caps_scores) scores = capped(block, scores, matrix);
    const bool sinks = !how.sinks.empty();
    const Extent row{.per_token = sinks ? shape.heads : 0, .per_token_pair = shape.heads};
    if (sinks) scores = with_sinks(block, scores, how, row);
    TensorId weights = eager_softmax(block, scores, row, unfused && how.fp32_softmax && options.upcasts());
    if (sinks) weights = without_sinks(block, weights, matrix);
    if (options.dropout) weights = block.dropout("attention.dropout", weights, matrix, true);
    weights = block.product_input("attention.values", weights);
    if (block.style().autocast) block.last().attention_core = true;
    return eager_values(block, weights, qkv.tensors.back(), shape, repeats);
}

}  // namespace

QueryKeyValue rotary_embedding(BlockBuilder& block, const QueryKeyValue& qkv, const AttentionShape& shape,
                               bool fused) {
    const bool packed = qkv.tensors.size() == 1;
    const std::uint64_t rotated_width = shape.query_width() + shape.key_width();
    Operator op{.name = "rope",
                .kind = OperatorKind::rope,
                .forward_flops = {.per_token = 3 * rotated_width},
                .backward_flops = {.per_token = 3 * rotated_width},
                .in_place = fused};
    QueryKeyValue rotated = qkv;
    for (std::size_t i = 0; i < (packed ? 1U : 2U); ++i) {
        op.inputs.push_back(qkv.tensors[i]);
        rotated.tensors[i] = block.tensor(i == 0 ? "rope.query" : "rope.key", block.width_of(qkv.tensors[i]));
        op.outputs.push_back(rotated.tensors[i]);
    }
    if (block.style().torch_modules) {
        // Rotated in fp32 by torchtitan and torchtune: a copy of both and the products; torch.compile needs
        // none.
        op.in_place = false;
        const std::uint64_t copies = (block.style().fp32_compute ? 1 : 2) * 2 * rotated_width;
        if (!fused) op.forward_workspace = op.backward_workspace = {.per_token = copies};
    } else if (!fused)
        // The unfused form rotates halves into a copy before it multiplies.
        op.forward_workspace = op.backward_workspace = {.per_token = shape.query_width()};
    block.add(std::move(op));
    return rotated;
}

QueryKeyValue repeat_key_value(BlockBuilder& block, const QueryKeyValue& qkv, const AttentionShape& shape) {
    if (qkv.tensors.size() != 3 || shape.kv_heads == shape.heads) return qkv;
    QueryKeyValue repeated = qkv;
    for (const std::size_t i : {1U, 2U}) {
        repeated.tensors[i] = block.tensor(i == 1 ? "repeat.key" : "repeat.value", shape.query_width());
        block.add({.name = i == 1 ? "repeat.key" : "repeat.value",
                   .kind = OperatorKind::elementwise,
                   .inputs = {qkv.tensors[i]},
                   .outputs = {repeated.tensors[i]},
                   .forward_flops = {.per_token = shape.query_width()},
                   .backward_flops = {.per_token = shape.query_width()}});
    }
    return repeated;
}

BlockBuilder::TensorId attention_core(BlockBuilder& block, const QueryKeyValue& qkv,
                                      const AttentionShape& shape, const LoweringOptions& options,
                                      const ScoreOptions& scores) {
    if (options.attention == AttentionKernel::eager)
        return eager_attention(block, qkv, shape, options, scores);
    return fused_attention(block, qkv, shape, options, scores);
}

}  // namespace zeroplan
