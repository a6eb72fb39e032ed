#include <gtest/gtest.h>

#include <algorithm>

#include "core/engines/torch_scenarios.hpp"

namespace zeroplan {
namespace {

const BlockKind& kind_of(const ModelSpec& model, std::size_t block) {
    return model.block_kinds[model.blocks[block].kind];
}

/// Bytes a token of what backward reads, each tensor once.
std::uint64_t saved_bytes(const BlockKind& kind) {
    std::vector<bool> saved(kind.tensors.size(), false);
    for (const Operator& op : kind.operators)
        for (const std::uint32_t tensor : op.saved) saved[tensor] = true;
    std::uint64_t bytes = 0;
    for (std::size_t t = 0; t < saved.size(); ++t)
        if (saved[t])
            bytes += kind.tensors[t].extent.per_token *
                     bytes_per_element(resolve(kind.tensors[t].dtype, DType::bf16));
    return bytes;
}

constexpr std::uint64_t h = 4096, f = 11008, statistics = 2 * 4, log_sum_exp = 32 * 4;

TEST(TorchKernels, EagerLayersSaveEveryOperatorsInputs) {
    // A norm: fp32 copy, normalised and scaled value. Then q, k, v and attention's output; gate, silu, up and
    // their product. What torchtitan's no-recompute runs of this model hold.
    const ModelSpec model = build_llama(llama_2_7b_config(), torch_lowering());
    const std::uint64_t norms = 2 * (4 + 2 + 2) * h, attention = 4 * 2 * h, mlp = 4 * 2 * f;
    EXPECT_EQ(saved_bytes(kind_of(model, 1)), norms + attention + mlp + statistics + log_sum_exp);
}

TEST(TorchKernels, CompiledLayersSaveWhatProductsReadAndMake) {
    const ModelSpec model = build_llama(llama_2_7b_config(), torch_lowering(Kernels::compiled));
    const std::uint64_t norms = 2 * (2 + 2) * h, attention = 4 * 2 * h, mlp = 3 * 2 * f;
    EXPECT_EQ(saved_bytes(kind_of(model, 1)), norms + attention + mlp + statistics + log_sum_exp);
}

TEST(TorchKernels, KeyAndValueAreRepeatedForEqualHeads) {
    DecoderConfig config = llama_2_7b_config();
    const std::uint64_t equal = saved_bytes(kind_of(build_llama(config, torch_lowering()), 1));
    config.num_key_value_heads = 8;
    EXPECT_EQ(saved_bytes(kind_of(build_llama(config, torch_lowering()), 1)), equal);
    LoweringOptions flash = torch_lowering();
    flash.attention = AttentionKernel::flash;
    EXPECT_EQ(saved_bytes(kind_of(build_llama(config, flash), 1)), equal - 2 * 2 * (h - h / 4));
}

TEST(TorchKernels, LossKeepsAnFp32LogSoftmaxButNoLogits) {
    const ModelSpec model = build_llama(llama_2_7b_config(), torch_lowering());
    const BlockKind& head = kind_of(model, model.blocks.size() - 1);
    const std::uint64_t labels = 8, norm = (4 + 2 + 2) * h + 4;
    EXPECT_EQ(saved_bytes(head), norm + labels + 4 * 32000);
}

TEST(TorchKernels, ChunkedLossKeepsTheLogitsOfAllChunks) {
    LoweringOptions options = torch_lowering(Kernels::compiled);
    options.loss = LossKernel::chunked;
    const ModelSpec model = build_llama(llama_2_7b_config(), options);
    const BlockKind& head = kind_of(model, model.blocks.size() - 1);
    const std::uint64_t labels = 8, norm = (2 + 2) * h + 4;
    EXPECT_EQ(saved_bytes(head), norm + labels + 2 * 32000);
}

TEST(TorchKernels, AutocastKeepsResidualsInFp32AndCastsEveryProductsInput) {
    LoweringOptions options = torch_lowering();
    options.autocast = true;
    const ModelSpec model = build_llama(llama_2_7b_config(), options);
    const BlockKind& layer = kind_of(model, 1);
    EXPECT_EQ(layer.tensors[0].dtype, TensorDType::fp32);
    EXPECT_EQ(layer.tensors[layer.output].dtype, TensorDType::fp32);
    const auto casts = std::count_if(layer.operators.begin(), layer.operators.end(), [](const Operator& op) {
        return op.kind == OperatorKind::cast && op.name.find(".input") != std::string::npos;
    });
    EXPECT_EQ(casts, 5);  // q, k, v; gate, up: attention's and the MLP's own outputs are in the compute dtype
}

}  // namespace
}  // namespace zeroplan
