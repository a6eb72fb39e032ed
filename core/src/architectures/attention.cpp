#include "architectures/attention.hpp"

namespace zeroplan {
namespace {

using TensorId = BlockBuilder::TensorId;

TensorId fused_attention(BlockBuilder& block, const QueryKeyValue& qkv, const AttentionShape& shape) {
    const TensorId out = block.tensor("attention", shape.query_width());
    const TensorId log_sum_exp = block.tensor("attention.log_sum_exp", shape.heads, TensorDType::fp32);
    std::vector<TensorId> saved = qkv.tensors;
    saved.insert(saved.end(), {out, log_sum_exp});
    block.add({.name = "attention",
               .kind = OperatorKind::attention,
               .inputs = qkv.tensors,
               .outputs = {out, log_sum_exp},
               .saved = std::move(saved),
               .forward_flops = {.per_token_pair = 4 * shape.query_width()},
               .backward_flops = {.per_token_pair = 10 * shape.query_width()},  // scores are computed again
               // FlashAttention-2 sums the queries' gradient in fp32: twice the elements of a 16-bit dtype.
               .backward_workspace = {.per_token = 2 * shape.query_width()},
               .attention_core = true});
    return out;
}

TensorId eager_attention(BlockBuilder& block, const QueryKeyValue& qkv, const AttentionShape& shape,
                         bool dropout) {
    const TensorId query = qkv.tensors.front(), value = qkv.tensors.back();
    const std::vector<TensorId> query_key =
        qkv.tensors.size() == 1 ? qkv.tensors : std::vector<TensorId>{query, qkv.tensors[1]};
    const Extent matrix{.per_token_pair = shape.heads};
    const Flops forward{.per_token_pair = 2 * shape.query_width()},
        backward{.per_token_pair = 4 * shape.query_width()};

    const TensorId scores = block.add_tensor({.name = "attention.scores", .extent = matrix});
    block.add({.name = "attention.scores",
               .kind = OperatorKind::attention_scores,
               .inputs = query_key,
               .outputs = {scores},
               .saved = query_key,
               .forward_flops = forward,
               .backward_flops = backward,
               .attention_core = true});
    TensorId weights = block.add_tensor({.name = "attention.softmax", .extent = matrix});
    block.add({.name = "attention.softmax",
               .kind = OperatorKind::softmax,
               .inputs = {scores},
               .outputs = {weights},
               .saved = {weights},
               .forward_flops = {.per_token_pair = 5 * shape.heads},
               .backward_flops = {.per_token_pair = 4 * shape.heads},
               .attention_core = true});
    if (dropout) weights = block.dropout("attention.dropout", weights, matrix, true);
    const TensorId out = block.tensor("attention", shape.query_width());
    block.add({.name = "attention.values",
               .kind = OperatorKind::attention_values,
               .inputs = {weights, value},
               .outputs = {out},
               .saved = {weights, value},
               .forward_flops = forward,
               .backward_flops = backward,
               .attention_core = true});
    return out;
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
    // The unfused form rotates halves into a copy before it multiplies.
    if (!fused) op.forward_workspace = op.backward_workspace = {.per_token = shape.query_width()};
    block.add(std::move(op));
    return rotated;
}

BlockBuilder::TensorId attention_core(BlockBuilder& block, const QueryKeyValue& qkv,
                                      const AttentionShape& shape, AttentionKernel kernel, bool dropout) {
    return kernel == AttentionKernel::eager ? eager_attention(block, qkv, shape, dropout)
                                            : fused_attention(block, qkv, shape);
}

}  // namespace zeroplan
