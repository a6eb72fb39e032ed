#pragma once
#include <cstdint>
#include <string_view>

namespace zeroplan {

/// Sizes that a family's configuration class in transformers takes for absent keys; 0 means that there is no
/// default: the key has to be given, or follows from others (intermediate = 4 · hidden, key/value heads =
/// heads, head_dim = hidden / heads).
struct FamilySizes {
    std::uint64_t vocab_size = 0, hidden_size = 0, intermediate_size = 0, num_hidden_layers = 0,
                  num_attention_heads = 0, num_key_value_heads = 0, head_dim = 0, max_position_embeddings = 0;
    friend bool operator==(const FamilySizes&, const FamilySizes&) = default;
};

/// Those of `model_type`; all 0 for one whose sizes have to be given ("gpt").
FamilySizes family_sizes(std::string_view model_type);

}  // namespace zeroplan
