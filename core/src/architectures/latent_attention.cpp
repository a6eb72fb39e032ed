#include "architectures/latent_attention.hpp"

namespace zeroplan {

void LatentAttention::declare(bool bias) {
    const std::uint64_t query = shape().query_width();
    const auto linear = [&](const char* module, std::uint64_t in, std::uint64_t out, bool has_bias) {
        return block_.linear_parameters(std::string("self_attn.") + module, in, out, has_bias);
    };
    if (config_.query_rank == 0) {
        query_up_ = linear("q_proj", hidden_, query, false);
    } else {
        query_down_ = linear("q_a_proj", hidden_, config_.query_rank, bias);
        query_norm_ = {block_.parameter("self_attn.q_a_layernorm.weight", {config_.query_rank})};
        query_up_ = linear("q_b_proj", config_.query_rank, query, false);
    }
    key_value_down_ = linear("kv_a_proj_with_mqa", hidden_, config_.key_value_rank + config_.rope_dim, bias);
    key_value_norm_ = {block_.parameter("self_attn.kv_a_layernorm.weight", {config_.key_value_rank})};
    key_value_up_ =
        linear("kv_b_proj", config_.key_value_rank, heads_ * (config_.key_dim + config_.value_dim), false);
    output_ = linear("o_proj", shape().output_width(), hidden_, bias);
}

QueryKeyValue LatentAttention::write(TensorId x) {
    const std::uint64_t query_width = shape().query_width(), value_width = shape().output_width();
    TensorId query = x;
    std::uint64_t query_in = hidden_;
    if (config_.query_rank > 0) {
        query = block_.linear("self_attn.q_a_proj", x, hidden_, config_.query_rank, query_down_);
        query = block_.norm("self_attn.q_a_layernorm", query, config_.query_rank, 1, query_norm_, norm_);
        query_in = config_.query_rank;
    }
    query = block_.linear("self_attn.q_b_proj", query, query_in, query_width, query_up_);
    const TensorId combined = block_.linear("self_attn.kv_a_proj_with_mqa", x, hidden_,
                                            config_.key_value_rank + config_.rope_dim, key_value_down_);
    const TensorId compressed = block_.tensor("self_attn.kv_a", config_.key_value_rank);
    block_.add({.name = "self_attn.kv_a.split",
                .kind = OperatorKind::elementwise,
                .inputs = {combined},
                .outputs = {compressed}});
    const TensorId normed = block_.norm("self_attn.kv_a_layernorm", compressed, config_.key_value_rank, 1,
                                        key_value_norm_, norm_);
    const TensorId up = block_.linear("self_attn.kv_b_proj", normed, config_.key_value_rank,
                                      heads_ * (config_.key_dim + config_.value_dim), key_value_up_);
    const QueryKeyValue rotated{{block_.tensor("rope.query", query_width),
                                 block_.tensor("rope.key", query_width),
                                 block_.tensor("rope.value", value_width)}};
    block_.add({.name = "rope",
                .kind = OperatorKind::rope,
                .inputs = {query, up, combined},
                .outputs = rotated.tensors,
                .forward_flops = {.per_token = 6 * query_width},
                .backward_flops = {.per_token = 6 * query_width}});
    return rotated;
}

}  // namespace zeroplan
