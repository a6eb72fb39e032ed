#include "engines/megatron_rank_block.hpp"

namespace zeroplan {

using TensorId = BlockBuilder::TensorId;

RankBlock::Parameters RankBlock::norm_parameters(const std::string& module, std::uint64_t width) {
    Parameters ids{block_.parameter(module + ".weight", {width})};
    if (!rms_) ids.push_back(block_.parameter(module + ".bias", {width}));
    return ids;
}

TensorId RankBlock::norm(const std::string& name, TensorId x, std::uint64_t width, std::uint64_t rows,
                         Parameters parameters) {
    const TensorId out = block_.tensor(name, width);
    const TensorId statistics = block_.add_tensor({.name = name + ".statistics",
                                                   .extent = {.constant = rows * (rms_ ? 1U : 2U)},
                                                   .dtype = TensorDType::fp32});
    block_.add({.name = name,
                .kind = OperatorKind::norm,
                .inputs = {x},
                .outputs = {out, statistics},
                .saved = {x, statistics},
                .parameters = std::move(parameters),
                .forward_flops = {.per_token = 5 * width},
                .backward_flops = {.per_token = 10 * width}});
    return out;
}

TensorId RankBlock::layer_norm(const std::string& name, TensorId x, std::uint64_t width,
                               Parameters parameters) {
    const std::uint64_t rows = c_.gathers() ? c_.tokens() / c_.tensor : c_.tokens();
    return norm(name, x, c_.between(width), rows, std::move(parameters));
}

void RankBlock::communicate(CollectiveKind kind, GroupKind group, CollectiveMoment moment,
                            std::uint64_t width, bool overlapped, TensorDType dtype) {
    block_.last().collectives.push_back({.kind = kind,
                                         .group = group,
                                         .moment = moment,
                                         .extent = {.per_token = width},
                                         .dtype = dtype,
                                         .overlapped = overlapped});
}

/// In backward the input is gathered again beside the product for its gradient, and that gradient is reduced
/// beside the product for the weight's. source: LinearWithGradAccumulationAndAsyncCommunication
/// (megatron/core/tensor_parallel/layers.py), transformer_engine/pytorch/module/linear.py.
TensorId RankBlock::column_parallel(const std::string& name, TensorId x, std::uint64_t in, std::uint64_t out,
                                    Parameters parameters, Category category) {
    const TensorId y = block_.linear(name, x, in, out, std::move(parameters), category);
    if (c_.gathers()) {
        block_.last().forward_workspace = {.per_token = in};
        block_.last().backward_workspace = {.per_token = 2 * in};
        communicate(CollectiveKind::all_gather, GroupKind::tensor_group, CollectiveMoment::before_forward, in,
                    c_.overlaps_tensor_parallel);
        communicate(CollectiveKind::all_gather, GroupKind::tensor_group, CollectiveMoment::before_backward,
                    in, true);
        communicate(CollectiveKind::reduce_scatter, GroupKind::tensor_group, CollectiveMoment::after_backward,
                    in, true);
    } else if (c_.tensor > 1) {
        communicate(CollectiveKind::all_reduce, GroupKind::tensor_group, CollectiveMoment::after_backward, in,
                    true);
    }
    return y;
}

TensorId RankBlock::row_parallel(const std::string& name, TensorId x, std::uint64_t in, std::uint64_t out,
                                 Parameters parameters) {
    const TensorId y = block_.linear(name, x, in, c_.between(out), std::move(parameters));
    Operator& op = block_.last();
    op.out_features = out;
    op.forward_flops = {.per_token = 2 * in * out};
    op.backward_flops = {.per_token = 4 * in * out};
    if (c_.gathers()) {
        op.forward_workspace = op.backward_workspace = {.per_token = out};
        communicate(CollectiveKind::reduce_scatter, GroupKind::tensor_group, CollectiveMoment::after_forward,
                    out, c_.overlaps_tensor_parallel);
        communicate(CollectiveKind::all_gather, GroupKind::tensor_group, CollectiveMoment::before_backward,
                    out, c_.overlaps_tensor_parallel);
    } else if (c_.tensor > 1) {
        communicate(CollectiveKind::all_reduce, GroupKind::tensor_group, CollectiveMoment::after_forward,
                    out);
    }
    return y;
}

TensorId RankBlock::duplicated(const std::string& name, TensorId x, std::uint64_t in, std::uint64_t out,
                               Parameters parameters) {
    const TensorId y = block_.linear(name, x, in, c_.between(out), std::move(parameters));
    Operator& op = block_.last();
    op.out_features = out;
    const std::uint64_t products = in * c_.between(out);
    op.forward_flops = {.per_token = 2 * products};
    op.backward_flops = {.per_token = 4 * products};
    return y;
}

TensorId RankBlock::activation(const std::string& name, TensorId packed, const Extent& out, bool gated,
                               ActivationFunction function) {
    const TensorId y = block_.add_tensor({.name = name, .extent = out});
    block_.add({.name = name,
                .kind = gated ? OperatorKind::gated_activation : OperatorKind::activation,
                .inputs = {packed},
                .outputs = {y},
                .saved = {packed},
                .forward_flops = {.per_token = (gated ? 6 : 8) * out.per_token},
                .backward_flops = {.per_token = 12 * out.per_token},
                .function = function});
    return y;
}

TensorId RankBlock::alias(const std::string& name, TensorId x) {
    const TensorId y = block_.add_tensor({.name = name, .extent = {.per_token = block_.width_of(x)}});
    block_.add({.name = name, .kind = OperatorKind::cast, .inputs = {x}, .outputs = {y}, .in_place = true});
    return y;
}

TensorId RankBlock::copy(const std::string& name, std::vector<TensorId> inputs, const Extent& extent,
                         bool attention_core) {
    const TensorId y = block_.add_tensor({.name = name, .extent = extent});
    block_.add({.name = name,
                .kind = OperatorKind::cast,
                .inputs = std::move(inputs),
                .outputs = {y},
                .attention_core = attention_core});
    return y;
}

TensorId RankBlock::dropout_add(const std::string& name, TensorId residual, TensorId branch) {
    const std::uint64_t width = c_.between(c_.decoder.hidden_size);
    if (c_.decoder.dropout) branch = block_.dropout(name + ".dropout", branch, {.per_token = width});
    return block_.residual_add(name + ".add", residual, branch, width);
}

}  // namespace zeroplan
