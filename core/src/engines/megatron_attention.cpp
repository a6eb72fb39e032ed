#include "engines/megatron_attention.hpp"

namespace zeroplan {
namespace {

using TensorId = RankBlock::TensorId;

using CoreShape = RankCoreShape;

/// Context parallelism: every rank's keys and values pass all ranks while attention works on those that have
/// come, and their gradients come back. source: transformer_engine AttnFuncWithCPAndKVP2P.
void exchange_keys_and_values(RankBlock& rank, const CoreShape& shape) {
    const std::uint64_t ranks = rank.context().context;
    if (ranks == 1) return;
    const std::uint64_t width = ranks * shape.key_heads * (shape.key_dim + shape.value_dim);
    const auto add = [&](CollectiveKind kind, CollectiveMoment moment) {
        rank.communicate(kind, GroupKind::context_group, moment, width, true);
    };
    add(CollectiveKind::all_gather, CollectiveMoment::before_forward);
    add(CollectiveKind::all_gather, CollectiveMoment::before_backward);
    add(CollectiveKind::reduce_scatter, CollectiveMoment::after_backward);
}

/// One kernel (FlashAttention or cuDNN) that saves its inputs, its output and one fp32 log-sum-exp a head and
/// token. Backward sums the query's gradient in fp32; with grouped queries, key and value gradients are made
/// for every query head first.
TensorId fused_core(RankBlock& rank, const std::vector<TensorId>& qkv, const CoreShape& shape) {
    BlockBuilder& block = rank.builder();
    const TensorId out = block.tensor("core_attention", shape.heads * shape.value_dim);
    const TensorId log_sum_exp = block.tensor("core_attention.log_sum_exp", shape.heads, TensorDType::fp32);
    std::vector<TensorId> saved = qkv;
    saved.insert(saved.end(), {out, log_sum_exp});
    const std::uint64_t query_width = shape.heads * shape.key_dim;
    const std::uint64_t pairs = rank.context().context * shape.heads * (shape.key_dim + shape.value_dim);
    block.add({.name = "core_attention",
               .kind = OperatorKind::attention,
               .inputs = qkv,
               .outputs = {out, log_sum_exp},
               .saved = std::move(saved),
               .forward_flops = {.per_token_pair = 2 * pairs},
               .backward_flops = {.per_token_pair = 5 * pairs},
               .backward_workspace = {.per_token = (shape.key_heads != shape.heads ? 4 : 2) * query_width},
               .attention_core = true});
    exchange_keys_and_values(rank, shape);
    return out;
}

/// Scores, softmax, dropout and values as separate kernels.
class UnfusedCore {
public:
    UnfusedCore(RankBlock& rank, const CoreShape& shape)
        : rank_(rank),
          block_(rank.builder()),
          shape_(shape),
          matrix_{.per_token_pair = shape.heads * rank.context().context} {}

    TensorId write(std::vector<TensorId> qkv) {
        if (shape_.key_heads != shape_.heads) repeat_keys_and_values(qkv);
        TensorId weights = softmax(scores(qkv));
        if (rank_.context().decoder.dropout)
            weights = block_.dropout("core_attention.dropout", weights, matrix_, true);
        const TensorId out = block_.tensor("core_attention", shape_.heads * shape_.value_dim);
        product("core_attention.values", OperatorKind::attention_values, {weights, qkv.back()}, out,
                shape_.value_dim);
        return out;
    }

private:
    /// Every query head gets keys and values of its own.
    void repeat_keys_and_values(std::vector<TensorId>& qkv) {
        const TensorId key_source = qkv.size() == 1 ? qkv[0] : qkv[1];
        const TensorId key = rank_.copy("core_attention.repeated_key", {key_source},
                                        {.per_token = shape_.heads * shape_.key_dim}, true);
        const TensorId value = rank_.copy("core_attention.repeated_value", {qkv.back()},
                                          {.per_token = shape_.heads * shape_.value_dim}, true);
        qkv = {qkv.front(), key, value};
    }

    TensorId scores(const std::vector<TensorId>& qkv) {
        const std::vector<TensorId> query_key = qkv.size() == 1 ? qkv : std::vector<TensorId>{qkv[0], qkv[1]};
        const TensorId scores = block_.add_tensor({.name = "core_attention.scores", .extent = matrix_});
        product("core_attention.scores", OperatorKind::attention_scores, query_key, scores, shape_.key_dim);
        return scores;
    }

    TensorId softmax(TensorId scores) {
        const TensorId weights = block_.add_tensor({.name = "core_attention.softmax", .extent = matrix_});
        std::vector<TensorId> outputs{weights}, saved{weights};
        if (!rank_.context().fused_softmax) {
            // PyTorch's softmax over fp32 scores, which is then cast.
            outputs.push_back(block_.add_tensor(
                {.name = "core_attention.softmax.fp32", .extent = matrix_, .dtype = TensorDType::fp32}));
            saved = {outputs.back()};
        }
        block_.add({.name = "core_attention.softmax",
                    .kind = OperatorKind::softmax,
                    .inputs = {scores},
                    .outputs = std::move(outputs),
                    .saved = std::move(saved),
                    .forward_flops = {.per_token_pair = 5 * matrix_.per_token_pair},
                    .backward_flops = {.per_token_pair = 4 * matrix_.per_token_pair},
                    .attention_core = true});
        return weights;
    }

    void product(const char* name, OperatorKind kind, const std::vector<TensorId>& inputs, TensorId out,
                 std::uint64_t dim) {
        const std::uint64_t forward = 2 * matrix_.per_token_pair * dim;
        block_.add({.name = name,
                    .kind = kind,
                    .inputs = inputs,
                    .outputs = {out},
                    .saved = inputs,
                    .forward_flops = {.per_token_pair = forward},
                    .backward_flops = {.per_token_pair = 2 * forward},
                    .attention_core = true});
    }

    RankBlock& rank_;
    BlockBuilder& block_;
    CoreShape shape_;
    Extent matrix_;
};

}  // namespace

TensorId rank_attention_core(RankBlock& rank, const std::vector<TensorId>& qkv, const RankCoreShape& shape) {
    if (rank.context().attention != AttentionKernel::eager) return fused_core(rank, qkv, shape);
    return UnfusedCore(rank, shape).write(qkv);
}

RankAttention::RankAttention(RankBlock& rank)
    : rank_(rank),
      c_(rank.context()),
      d_(c_.decoder),
      heads_(c_.per_rank(d_.num_attention_heads)),
      key_heads_(std::max<std::uint64_t>(1, c_.per_rank(d_.num_key_value_heads))),
      key_dim_(d_.head_dim),
      value_dim_(d_.head_dim) {
    if (!d_.latent_attention) return;
    key_heads_ = heads_;
    key_dim_ = d_.latent_attention->key_dim + d_.latent_attention->rope_dim;
    value_dim_ = d_.latent_attention->value_dim;
}

void RankAttention::declare(const std::string& prefix) {
    BlockBuilder& block = rank_.builder();
    projection_ = block.linear_parameters(prefix + "linear_proj", heads_ * value_dim_, d_.hidden_size,
                                          d_.attention_output_bias);
    if (d_.latent_attention) return declare_latent(prefix);
    qkv_ = block.linear_parameters(prefix + "linear_qkv", d_.hidden_size,
                                   (heads_ + 2 * key_heads_) * key_dim_, d_.attention_bias);
    if (!d_.query_key_norm) return;
    query_norm_ = rank_.norm_parameters(prefix + "q_layernorm", d_.head_dim);
    key_norm_ = rank_.norm_parameters(prefix + "k_layernorm", d_.head_dim);
}

void RankAttention::declare_latent(const std::string& prefix) {
    BlockBuilder& block = rank_.builder();
    const LatentAttentionConfig& latent = *d_.latent_attention;
    const std::uint64_t query_width = heads_ * key_dim_;
    if (latent.query_rank > 0) {
        query_down_ =
            block.linear_parameters(prefix + "linear_q_down_proj", d_.hidden_size, latent.query_rank, false);
        query_up_ =
            block.linear_parameters(prefix + "linear_q_up_proj", latent.query_rank, query_width, false);
        query_norm_ = rank_.norm_parameters(prefix + "q_layernorm", latent.query_rank);
    } else {
        query_up_ = block.linear_parameters(prefix + "linear_q_proj", d_.hidden_size, query_width, false);
    }
    key_value_down_ = block.linear_parameters(prefix + "linear_kv_down_proj", d_.hidden_size,
                                              latent.key_value_rank + latent.rope_dim, false);
    key_value_up_ = block.linear_parameters(prefix + "linear_kv_up_proj", latent.key_value_rank,
                                            heads_ * (latent.key_dim + latent.value_dim), false);
    key_norm_ = rank_.norm_parameters(prefix + "kv_layernorm", latent.key_value_rank);
}

TensorId RankAttention::write(TensorId x) {
    const std::vector<TensorId> qkv = d_.latent_attention ? latent_projections(x) : packed_projection(x);
    const TensorId out = rank_attention_core(rank_, qkv, {heads_, key_heads_, key_dim_, value_dim_});
    // The projection saves the attention's output even where the attention is recomputed.
    return rank_.row_parallel("linear_proj", rank_.alias("core_attention.output", out), heads_ * value_dim_,
                              d_.hidden_size, projection_);
}

std::vector<TensorId> RankAttention::packed_projection(TensorId x) {
    const TensorId packed =
        rank_.column_parallel("linear_qkv", x, d_.hidden_size, (heads_ + 2 * key_heads_) * key_dim_, qkv_);
    if (d_.position_embedding != "rope" && !d_.query_key_norm) return {packed};
    std::vector<TensorId> qkv = rotated(packed);
    if (d_.query_key_norm) {
        qkv[0] = rank_.norm("q_layernorm", qkv[0], heads_ * key_dim_, c_.tokens() * heads_, query_norm_);
        qkv[1] =
            rank_.norm("k_layernorm", qkv[1], key_heads_ * key_dim_, c_.tokens() * key_heads_, key_norm_);
    }
    return qkv;
}

/// Rotated query and key are new tensors; the value is copied beside them, since the attention kernels take
/// three contiguous tensors or one packed, and the packed product is freed.
std::vector<TensorId> RankAttention::rotated(TensorId packed) {
    BlockBuilder& block = rank_.builder();
    const std::uint64_t query = heads_ * key_dim_, key = key_heads_ * key_dim_;
    const std::vector<TensorId> qkv{block.tensor("rope.query", query), block.tensor("rope.key", key),
                                    block.tensor("rope.value", key)};
    block.add({.name = "rope",
               .kind = OperatorKind::rope,
               .inputs = {packed},
               .outputs = qkv,
               .forward_flops = {.per_token = 3 * (query + key)},
               .backward_flops = {.per_token = 3 * (query + key)}});
    return qkv;
}

/// The query is rotated in place; key and value are written from the up-projection and the rotated part that
/// all heads share. The compressed key and value are a slice of the down-projection, which the norm copies.
std::vector<TensorId> RankAttention::latent_projections(TensorId x) {
    BlockBuilder& block = rank_.builder();
    const LatentAttentionConfig& latent = *d_.latent_attention;
    TensorId query = x;
    if (latent.query_rank > 0) {
        query = rank_.duplicated("linear_q_down_proj", x, d_.hidden_size, latent.query_rank, query_down_);
        query = rank_.layer_norm("q_layernorm", query, latent.query_rank, query_norm_);
    }
    query = rank_.column_parallel("linear_q_up_proj", query,
                                  latent.query_rank > 0 ? latent.query_rank : d_.hidden_size,
                                  heads_ * key_dim_, query_up_);
    const TensorId combined = rank_.duplicated("linear_kv_down_proj", x, d_.hidden_size,
                                               latent.key_value_rank + latent.rope_dim, key_value_down_);
    const TensorId compressed =
        rank_.copy("compressed_kv", {combined}, {.per_token = c_.between(latent.key_value_rank)});
    const TensorId normed = rank_.layer_norm("kv_layernorm", compressed, latent.key_value_rank, key_norm_);
    const TensorId up = rank_.column_parallel("linear_kv_up_proj", normed, latent.key_value_rank,
                                              heads_ * (latent.key_dim + latent.value_dim), key_value_up_);
    const TensorId rotated_query = rank_.alias("rope.query", query);
    const TensorId key = block.tensor("rope.key", heads_ * key_dim_);
    const TensorId value = block.tensor("rope.value", heads_ * value_dim_);
    block.add({.name = "rope",
               .kind = OperatorKind::rope,
               .inputs = {up, combined},
               .outputs = {key, value},
               .forward_flops = {.per_token = 3 * heads_ * key_dim_},
               .backward_flops = {.per_token = 3 * heads_ * key_dim_}});
    return {rotated_query, key, value};
}

}  // namespace zeroplan
