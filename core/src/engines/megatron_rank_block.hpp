#pragma once
#include "architectures/block_builder.hpp"
#include "engines/megatron_context.hpp"

namespace zeroplan {

/// Operators of one rank, written one after another. Every tensor is what autograd, Transformer Engine or
/// Megatron's own functions allocate; what each saves for backward is stated with it.
class RankBlock {
public:
    using TensorId = BlockBuilder::TensorId;
    using Parameters = std::vector<BlockBuilder::ParameterId>;

    RankBlock(const MegatronContext& context, std::string name, TensorSpec input)
        : c_(context),
          block_(std::move(name), std::move(input)),
          rms_(context.decoder.normalization == "rmsnorm") {}

    const MegatronContext& context() const { return c_; }
    BlockBuilder& builder() { return block_; }

    Parameters norm_parameters(const std::string& module, std::uint64_t width);
    /// Saves its input and the rows' statistics (one fp32 a row for RMSNorm, two for LayerNorm). `rows` in
    /// all.
    TensorId norm(const std::string& name, TensorId x, std::uint64_t width, std::uint64_t rows,
                  Parameters parameters);
    /// Norm of tokens that lie between the tensor-parallel regions, `width` features each.
    TensorId layer_norm(const std::string& name, TensorId x, std::uint64_t width, Parameters parameters);

    /// Output columns are split over the tensor-parallel ranks. With sequence parallelism the input is
    /// gathered for the product, again for the weight's gradient, and the input's gradient is
    /// reduce-scattered.
    TensorId column_parallel(const std::string& name, TensorId x, std::uint64_t in, std::uint64_t out,
                             Parameters parameters, Category category = Category::activations);
    /// Input columns are split; partial sums are all-reduced in place, or reduce-scattered into a new tensor.
    TensorId row_parallel(const std::string& name, TensorId x, std::uint64_t in, std::uint64_t out,
                          Parameters parameters);
    /// Every rank has the whole weight and works on the tokens it has.
    TensorId duplicated(const std::string& name, TensorId x, std::uint64_t in, std::uint64_t out,
                        Parameters parameters);

    /// act(up), or act(gate) · up of one packed tensor of twice the width.
    TensorId activation(const std::string& name, TensorId packed, const Extent& out, bool gated,
                        ActivationFunction function);
    /// Another name for a tensor.
    TensorId alias(const std::string& name, TensorId x);
    /// A new tensor made from `inputs` that saves nothing for backward.
    TensorId copy(const std::string& name, std::vector<TensorId> inputs, const Extent& extent,
                  bool attention_core = false);
    /// Dropout on a branch and the residual addition.
    TensorId dropout_add(const std::string& name, TensorId residual, TensorId branch);

    /// Adds to the operator written last a collective of `width` elements a token (of all ranks together).
    void communicate(CollectiveKind kind, GroupKind group, CollectiveMoment moment, std::uint64_t width,
                     bool overlapped = false, TensorDType dtype = TensorDType::compute);

private:
    const MegatronContext& c_;
    BlockBuilder block_;
    bool rms_;
};

}  // namespace zeroplan
