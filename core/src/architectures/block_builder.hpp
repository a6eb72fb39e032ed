#pragma once
#include <string>
#include <utility>
#include <vector>

#include "zeroplan/build_model.hpp"
#include "zeroplan/model_spec.hpp"

namespace zeroplan {

/// A block kind with its parameters' names and shapes, from which any number of blocks is made.
struct BlockTemplate {
    struct ParameterTemplate {
        std::string suffix;  ///< behind the block's prefix: "self_attn.q_proj.weight"
        std::vector<std::uint64_t> shape;
        bool trainable = true;
    };
    BlockKind kind;
    std::vector<ParameterTemplate> parameters;
};

/// fused: saves its input and the rows' statistics. Unfused RMSNorm as Hugging Face writes it: an fp32 copy
/// of the input (the input itself where that is fp32), the statistics and the normalised value before
/// scaling.
struct NormKernel {
    bool rms = true, fused = true, upcasts = true;
    bool fp32_layer_norm = false;  ///< F.layer_norm of an fp32 copy (OLMo)
};

/// Which kernels a block's modules become.
struct KernelStyle {
    bool fused = true;           ///< one kernel for a norm, a gated activation, a rotary embedding
    bool torch_modules = false;  ///< PyTorch operators one by one, or what torch.compile makes of them
    bool fp32_compute = false;   ///< upcasts to fp32 copy nothing
    bool autocast = false;       ///< norms, embeddings and residuals are fp32, products cast their inputs
    /// The dtype of what isn't a product.
    TensorDType residual() const { return autocast ? TensorDType::fp32 : TensorDType::compute; }
};
KernelStyle kernel_style(const LoweringOptions& options);

/// Writes down a block's operators one after another. What each saves for backward is stated here, once an
/// operator: a linear its input, a fused norm its input and row statistics, flash attention q, k, v, output
/// and log-sum-exp, a gated activation both inputs, an addition nothing.
class BlockBuilder {
public:
    using TensorId = std::uint32_t;
    using ParameterId = std::uint32_t;

    /// `input`: the block's tensor 0.
    BlockBuilder(std::string name, TensorSpec input, KernelStyle style = {});

    /// Parameters stand in registration order, whichever order the operators run in.
    ParameterId parameter(std::string suffix, std::vector<std::uint64_t> shape);
    /// One that training changes by a rule of its own: no operator makes a gradient of it.
    ParameterId untrained_parameter(std::string suffix, std::vector<std::uint64_t> shape);
    /// Weight [out, in] (or [in, out] if `transposed`, as GPT-2 stores them) and bias [out] of a linear, or
    /// weight alone.
    std::vector<ParameterId> linear_parameters(const std::string& module, std::uint64_t in, std::uint64_t out,
                                               bool bias, bool transposed = false);

    TensorId tensor(std::string name, std::uint64_t per_token, TensorDType dtype = TensorDType::compute,
                    Category category = Category::activations);
    TensorId add_tensor(TensorSpec spec);

    /// Rows of a table by token id.
    TensorId embedding(std::string name, TensorId tokens, ParameterId table, std::uint64_t width);
    /// Adds a learned position to every token, in place.
    TensorId position_embedding(std::string name, TensorId x, ParameterId table, std::uint64_t width);
    TensorId linear(std::string name, TensorId x, std::uint64_t in, std::uint64_t out,
                    std::vector<ParameterId> parameters, Category category = Category::activations);
    /// Norm of `width` columns, `rows` times a token (1, or the heads for q/k norms).
    TensorId norm(std::string name, TensorId x, std::uint64_t width, std::uint64_t rows,
                  std::vector<ParameterId> parameters, const NormKernel& kernel);
    TensorId activation(std::string name, TensorId x, std::uint64_t width, ActivationFunction function);
    /// act(gate) · up; one kernel if `fused`, else two that also keep act(gate).
    TensorId gated_activation(std::string name, TensorId gate, TensorId up, std::uint64_t width,
                              ActivationFunction function, bool fused);
    /// x · y, element by element.
    TensorId multiply(std::string name, TensorId x, TensorId y, std::uint64_t width);
    /// x times a number.
    TensorId scaled(const std::string& name, TensorId x, std::uint64_t width);
    TensorId residual_add(std::string name, TensorId x, TensorId branch, std::uint64_t width);
    TensorId dropout(std::string name, TensorId x, const Extent& extent, bool attention_core = false);
    /// Appends an operator as it is.
    Operator& add(Operator op);
    /// The operator appended last, to say more about it.
    Operator& last() { return block_.kind.operators.back(); }

    std::uint64_t width_of(TensorId tensor) const { return block_.kind.tensors[tensor].extent.per_token; }
    const Extent& extent_of(TensorId tensor) const { return block_.kind.tensors[tensor].extent; }
    std::size_t tensor_count() const { return block_.kind.tensors.size(); }
    /// The block, handing on `output`.
    BlockTemplate finish(TensorId output, bool is_layer = false);
    /// The last block, which ends in `loss` over the tensor `target`.
    BlockTemplate finish_with_loss(TensorId loss, TensorId target);

    const KernelStyle& style() const { return style_; }
    /// A copy of `x` in the compute dtype for a product under autocast, or `x` itself. Every product casts
    /// anew.
    TensorId product_input(const std::string& name, TensorId x);
    /// An fp32 copy of `x`, or `x` itself where it is fp32 already.
    TensorId upcast(std::string name, TensorId x, std::uint64_t width);
    /// Workspace of `per_token` fp32 numbers, counted in elements of the compute dtype.
    Extent fp32_workspace(std::uint64_t per_token) const;

private:
    TensorId torch_rms_norm(const std::string& name, TensorId x, std::uint64_t width, std::uint64_t rows,
                            std::vector<ParameterId> parameters);

    BlockTemplate block_;
    KernelStyle style_;
};

/// Pairs of a position in a template and the earlier parameter of the model that it is tied to.
using TiedParameters = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

/// Appends a block made from `block` to the model, and its kind if no other block is of an equal one.
/// Parameters are named prefix + suffix.
void append_block(ModelSpec& model, const BlockTemplate& block, std::string name, const std::string& prefix,
                  const TiedParameters& shared = {});

/// A model of the configuration's names and sizes that reads tokens, without blocks yet.
ModelSpec token_model(const DecoderConfig& config);

/// int64 ids of tokens, which an embedding reads.
TensorSpec token_tensor();
/// What blocks hand on to each other: `width` numbers a token.
TensorSpec hidden_tensor(std::uint64_t width, const KernelStyle& style);
/// The loss value: one fp32 number, which nothing differentiates further.
TensorSpec loss_tensor();
/// int64 class or token ids, `per_token` of them.
TensorSpec label_tensor();

}  // namespace zeroplan
