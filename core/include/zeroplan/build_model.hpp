#pragma once
#include <string>

#include "zeroplan/model_spec.hpp"
#include "zeroplan/training_config.hpp"

namespace zeroplan {

/// How a model's modules become operators: which kernels run them. Parameters don't depend on it.
struct LoweringOptions {
    AttentionKernel attention = AttentionKernel::flash;
    LossKernel loss = LossKernel::eager;
    Kernels kernels = Kernels::fused;
    bool dropout = false;
    DType compute_dtype = DType::bf16;  ///< eager kernels upcast to fp32 unless it is fp32 or tf32 already
    bool upcasts() const { return bytes_per_element(compute_dtype) < bytes_per_element(DType::fp32); }
    /// Modules are written in PyTorch operators, as torchtitan, torchtune and Hugging Face write them: one
    /// kernel an operator when eager, one graph a layer when compiled.
    bool torch_modules = false;
    bool autocast = false;  ///< torch.autocast: fp32 weights and residuals, products in the compute dtype
};

/// A decoder with the module names of its family (`config.family`), in its order of registration.
ModelSpec build_decoder(const DecoderConfig& config, const LoweringOptions& options);
/// A decoder with the Llama family's module names (llama, mistral, qwen2, …): model.layers.N.self_attn.q_proj
/// ….
ModelSpec build_llama(const DecoderConfig& config, const LoweringOptions& options);
/// A decoder with the GPT-2 family's module names: transformer.h.N.attn.c_attn ….
ModelSpec build_gpt2(const DecoderConfig& config, const LoweringOptions& options);

/// One layer of a plain stack.
struct StackLayer {
    std::uint64_t in = 0, out = 0;
    bool bias = true;
    ActivationFunction activation = ActivationFunction::none;
};
/// Linears one after the other and a loss: "mse" against the input (out of the last = in of the first) or
/// "cross_entropy".
ModelSpec build_plain_stack(const std::string& name, const std::vector<StackLayer>& layers,
                            const std::string& loss);

}  // namespace zeroplan
