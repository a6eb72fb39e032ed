#include "architectures/cross_attention.hpp"

namespace zeroplan {

CrossAttention::CrossAttention(BlockBuilder& block, const DecoderConfig& config, const DecoderNames& names,
                               const LoweringOptions& options, std::uint64_t context_width)
    : block_(block),
      config_(config),
      names_(names),
      options_(options),
      context_width_(context_width),
      shape_{config.num_attention_heads, config.num_key_value_heads, config.head_dim} {}

void CrossAttention::declare() {
    const std::uint64_t hidden = config_.hidden_size, q = shape_.query_width(), kv = shape_.key_width();
    const auto linear = [&](const std::string& module, std::uint64_t in, std::uint64_t out, bool bias) {
        return block_.linear_parameters(module, in, out, bias, names_.transposed);
    };
    query_ = linear(names_.cross_query, hidden, q, config_.attention_bias);
    key_ = linear(names_.cross_key, context_width_, kv, config_.attention_bias);
    value_ = linear(names_.cross_value, context_width_, kv, config_.attention_bias);
    output_ = linear(names_.cross_output, q, hidden, config_.attention_output_bias);
}

BlockBuilder::TensorId CrossAttention::project_context(const std::string& name,
                                                       const Parameters& parameters) {
    const auto first = static_cast<TensorId>(block_.tensor_count());
    const TensorId out = block_.linear(name, *context_, context_width_, shape_.key_width(), parameters);
    for (TensorId t = first; t < block_.tensor_count(); ++t) from_context_.push_back(t);
    return out;
}

BlockBuilder::TensorId CrossAttention::write(TensorId x, const ScoreOptions& scores) {
    const std::uint64_t hidden = config_.hidden_size, q = shape_.query_width();
    context_ = block_.add_tensor(
        {.name = "context", .extent = {.per_token = context_width_}, .dtype = block_.style().residual()});
    from_context_.push_back(*context_);
    const TensorId query = block_.linear(names_.cross_query, x, hidden, q, query_);
    const TensorId key = project_context(names_.cross_key, key_);
    const QueryKeyValue qkv{{query, key, project_context(names_.cross_value, value_)}};
    const auto first = static_cast<TensorId>(block_.tensor_count());
    const TensorId out = attention_core(block_, qkv, shape_, options_, scores);
    for (TensorId t = first; t < block_.tensor_count(); ++t)
        if (block_.extent_of(t).per_token_pair != 0) crossing_.push_back(t);
    return block_.linear(names_.cross_output, out, q, hidden, output_);
}

}  // namespace zeroplan
