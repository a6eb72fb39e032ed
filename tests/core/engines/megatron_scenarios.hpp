#pragma once
#include <string>

#include "zeroplan/plan.hpp"

namespace zeroplan {

/// What a Megatron test varies; the model has 8 layers, hidden 64, 4 heads, ffn 256, vocabulary 512,
/// sequences of 128 tokens and micro-batches of 2.
struct MegatronCase {
    std::uint64_t tensor = 1, pipeline = 1, chunks = 1, context = 1, data = 1, expert = 1;
    bool sequence = false;
    std::uint32_t zero_stage = 0;
    std::uint64_t micro_batches = 1;
    Recompute recompute = Recompute::none;
    AttentionKernel attention = AttentionKernel::flash;
    bool dropout = false, tied = true;
    DType compute = DType::bf16;
    PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
    std::string megatron_json{};
    std::string engine_version{};
};

/// `family`: "gpt" (LayerNorm, GELU, biases, learned positions), "llama", or "deepseek" (latent attention; 8
/// experts of 32, 2 a token, one shared, in all layers but the first).
Scenario megatron_scenario(const std::string& family, const MegatronCase& wanted);

/// Bytes of `category` that rank group `group` holds between steps, as the tensors' sizes.
std::uint64_t resident_of(const Plan& plan, std::size_t group, Category category);

}  // namespace zeroplan
