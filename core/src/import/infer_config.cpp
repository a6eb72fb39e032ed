#include "import/infer_config.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "import/infer_families.hpp"

namespace zeroplan {

using nlohmann::json;

std::uint64_t assumed_head_dim(std::uint64_t hidden, std::uint64_t query, std::uint64_t key_value) {
    std::uint64_t head_dim = hidden >= 2560 ? 128 : 64;
    while (head_dim > 1 && (query % head_dim != 0 || key_value % head_dim != 0)) head_dim /= 2;
    return head_dim;
}

void assume_heads(json& config, std::uint64_t head_dim, std::uint64_t query, std::uint64_t key_value) {
    config["num_attention_heads"] = query / head_dim;
    config["num_key_value_heads"] = key_value / head_dim;
    const std::string shared =
        query == key_value ? "" : fmt::format(" and {} key/value heads", key_value / head_dim);
    config["notes"].push_back(
        fmt::format("the checkpoint does not say how large a head is: {} is assumed, so {} heads{}", head_dim,
                    query / head_dim, shared));
}

json infer_config(const CheckpointHeader& checkpoint) {
    for (const char* prefix : {"model.", ""}) {
        const CheckpointShapes shapes(checkpoint, prefix);
        if (shapes.has("embed_tokens.weight")) return infer_llama_like(shapes);
    }
    if (json config = infer_other_family(checkpoint); !config.is_null()) return config;
    const std::string first = checkpoint.tensors.empty() ? "nothing" : checkpoint.tensors.begin()->first;
    throw Error(
        ErrorCode::not_supported,
        fmt::format("the checkpoint's names are of no family that is recognised: it begins with {}", first),
        "put the model's config.json beside it, or give that: it names the family (recognised by names "
        "are llama, mistral, qwen 2 and 3, mixtral, qwen-moe, olmoe, gemma 2 and 3, olmo 1 and 2, glm 4, "
        "phi, phi "
        "3, "
        "starcoder 2, gpt-oss, gpt2, gpt-neo, gpt-j, gpt-neox, bloom, falcon, opt, mpt, bert, t5, mamba and "
        "plain stacks)",
        {checkpoint.path.string(), ""});
}

}  // namespace zeroplan
