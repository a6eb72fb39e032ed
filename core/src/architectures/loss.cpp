#include "architectures/loss.hpp"

#include "zeroplan/units.hpp"

namespace zeroplan {
namespace {

using TensorId = BlockBuilder::TensorId;

/// torchtune's CEWithChunkedOutputLoss splits the tokens into eight by default.
constexpr std::uint64_t loss_chunks = 8;

TensorId upcast_of(BlockBuilder& block, TensorId logits, std::uint64_t vocabulary) {
    const TensorId upcast = block.tensor("logits.fp32", vocabulary, TensorDType::fp32, Category::logits);
    block.add({.name = "loss.upcast",
               .kind = OperatorKind::cast,
               .inputs = {logits},
               .outputs = {upcast},
               .forward_flops = {.per_token = vocabulary},
               .backward_flops = {.per_token = vocabulary}});
    return upcast;
}

TensorId eager_loss(BlockBuilder& block, TensorId logits, TensorId labels, std::uint64_t vocabulary,
                    bool upcasts) {
    const TensorId scores = upcasts ? upcast_of(block, logits, vocabulary) : logits;
    const TensorId log_softmax = block.tensor("log_softmax", vocabulary, TensorDType::fp32, Category::logits);
    const TensorId loss = block.add_tensor(loss_tensor());
    block.add({.name = "loss",
               .kind = OperatorKind::cross_entropy,
               .inputs = {scores, labels},
               .outputs = {log_softmax, loss},
               .saved = {log_softmax, labels, logits},
               .forward_flops = {.per_token = 5 * vocabulary},
               .backward_flops = {.per_token = 3 * vocabulary}});
    return loss;
}

TensorId fused_loss(BlockBuilder& block, TensorId logits, TensorId labels, std::uint64_t vocabulary) {
    const TensorId loss = block.add_tensor(loss_tensor());
    // The first output must not stand in for the logits: in_place concerns the gradient only.
    block.add({.name = "loss",
               .kind = OperatorKind::cross_entropy,
               .inputs = {logits, labels},
               .outputs = {loss},
               .saved = {logits, labels},
               .forward_flops = {.per_token = 5 * vocabulary},
               .backward_flops = {.per_token = 3 * vocabulary},
               .in_place = true});
    return loss;
}

TensorId chunked_loss(BlockBuilder& block, TensorId x, std::uint64_t hidden, std::uint64_t vocabulary,
                      std::vector<BlockBuilder::ParameterId> parameters, TensorId labels) {
    const std::uint64_t chunk = round_up(vocabulary, loss_chunks) / loss_chunks;
    const TensorId logits = block.tensor("logits.chunk", chunk, TensorDType::compute, Category::logits);
    const TensorId upcast = block.tensor("logits.chunk.fp32", chunk, TensorDType::fp32, Category::logits);
    const TensorId log_softmax =
        block.tensor("log_softmax.chunk", chunk, TensorDType::fp32, Category::logits);
    const TensorId loss = block.add_tensor(loss_tensor());
    const std::uint64_t products = checked_product(hidden, vocabulary, "linear operations");
    block.add({.name = "lm_head and loss",
               .kind = OperatorKind::cross_entropy,
               .inputs = {x, labels},
               .outputs = {logits, upcast, log_softmax, loss},
               .saved = {x, labels},
               .parameters = std::move(parameters),
               .forward_flops = {.per_token = 2 * products},
               .backward_flops = {.per_token = 6 * products},   // the logits again, then both gradients
               .backward_workspace = {.per_token = 5 * chunk},  // 16-bit logits and two fp32 copies
               .in_features = hidden,
               .out_features = vocabulary});
    return loss;
}

/// F.cross_entropy on fp32 logits (trainers compile their layers, not this): log-softmax, which keeps its
/// output, and the negative log-likelihood. The logits themselves are freed once they are cast (torchtitan,
/// torchtune and Hugging Face's Trainer drop them before backward).
TensorId torch_eager_loss(BlockBuilder& block, TensorId logits, TensorId labels, std::uint64_t vocabulary) {
    const TensorId wide = block.upcast("logits.fp32", logits, vocabulary);
    const TensorId log_softmax = block.tensor("log_softmax", vocabulary, TensorDType::fp32, Category::logits);
    block.add({.name = "log_softmax",
               .kind = OperatorKind::elementwise,
               .inputs = {wide},
               .outputs = {log_softmax},
               .saved = {log_softmax},
               .forward_flops = {.per_token = 4 * vocabulary},
               .backward_flops = {.per_token = 3 * vocabulary}});
    const TensorId loss = block.add_tensor(loss_tensor());
    block.add({.name = "loss",
               .kind = OperatorKind::cross_entropy,
               .inputs = {log_softmax, labels},
               .outputs = {loss},
               .saved = {log_softmax, labels},
               .forward_flops = {.per_token = 1},
               .backward_flops = {.per_token = 1}});
    return loss;
}

/// torchtune's CEWithChunkedOutputLoss: the logits of every chunk stay, the loss upcasts one chunk at a time;
/// eager, each chunk's fp32 log-softmax stays as well.
TensorId torch_chunked_loss(BlockBuilder& block, TensorId logits, TensorId labels, std::uint64_t vocabulary,
                            bool compiled) {
    const std::uint64_t chunk = round_up(vocabulary, loss_chunks) / loss_chunks;
    std::vector<TensorId> chunks;
    for (std::uint64_t i = 0; i < loss_chunks; ++i)
        chunks.push_back(block.tensor("log_softmax.chunk", chunk, TensorDType::fp32, Category::logits));
    const TensorId statistics = block.tensor("loss.statistics", 2, TensorDType::fp32);
    TensorId loss = 0;
    for (std::uint64_t i = 0; i < loss_chunks; ++i) {
        loss = block.add_tensor(loss_tensor());
        Operator op{.name = "loss",
                    .kind = OperatorKind::cross_entropy,
                    .inputs = {logits, labels},
                    .outputs = {chunks[i], loss},
                    .saved = {chunks[i], labels},
                    .forward_flops = {.per_token = 5 * chunk},
                    .backward_flops = {.per_token = 3 * chunk},
                    .forward_workspace = block.fp32_workspace(chunk),
                    .backward_workspace = block.fp32_workspace(2 * chunk)};
        if (compiled) {
            op.outputs = {i == 0 ? statistics : loss, loss};
            if (i > 0) op.outputs = {loss};
            op.saved = {logits, labels};
            op.forward_workspace = op.backward_workspace = {};
        }
        block.add(std::move(op));
    }
    return loss;
}

/// loss_parallel of torch.distributed.tensor.parallel: log-softmax in shifted and exponential copies, whose
/// backward is joined to the negative log-likelihood's: a zeroed gradient, the exponential and their sum.
TensorId torch_vocab_parallel_loss(BlockBuilder& block, TensorId logits, TensorId labels,
                                   std::uint64_t vocabulary) {
    const TensorId wide = block.upcast("logits.fp32", logits, vocabulary);
    const TensorId log_softmax = block.tensor("log_softmax", vocabulary, TensorDType::fp32, Category::logits);
    block.add({.name = "log_softmax",
               .kind = OperatorKind::elementwise,
               .inputs = {wide},
               .outputs = {log_softmax},
               .forward_flops = {.per_token = 4 * vocabulary},
               .backward_flops = {.per_token = 1},
               .forward_workspace = block.fp32_workspace(2 * vocabulary),
               .in_place = true});
    const TensorId loss = block.add_tensor(loss_tensor());
    block.add({.name = "loss",
               .kind = OperatorKind::cross_entropy,
               .inputs = {log_softmax, labels},
               .outputs = {loss},
               .saved = {log_softmax, labels},
               .forward_flops = {.per_token = 1},
               .backward_flops = {.per_token = 4 * vocabulary},
               .backward_workspace = block.fp32_workspace(2 * vocabulary)});
    return loss;
}

/// cap · tanh(logits / cap): backward reads the tanh.
TensorId capped(BlockBuilder& block, TensorId logits, std::uint64_t vocabulary) {
    const TensorId out = block.tensor("logits.capped", vocabulary, TensorDType::compute, Category::logits);
    const TensorId tanh = block.tensor("logits.tanh", vocabulary, TensorDType::compute, Category::logits);
    block.add({.name = "logits.cap",
               .kind = OperatorKind::elementwise,
               .inputs = {logits},
               .outputs = {out, tanh},
               .saved = {tanh},
               .forward_flops = {.per_token = 3 * vocabulary},
               .backward_flops = {.per_token = 3 * vocabulary}});
    return out;
}

TensorId scaled(BlockBuilder& block, TensorId logits, std::uint64_t vocabulary) {
    const TensorId out = block.tensor("logits.scaled", vocabulary, TensorDType::compute, Category::logits);
    block.add({.name = "logits.scale",
               .kind = OperatorKind::elementwise,
               .inputs = {logits},
               .outputs = {out},
               .forward_flops = {.per_token = vocabulary},
               .backward_flops = {.per_token = vocabulary}});
    return out;
}

TensorId torch_loss(BlockBuilder& block, TensorId logits, TensorId labels, std::uint64_t vocabulary,
                    const LoweringOptions& options) {
    const bool compiled = options.kernels == Kernels::compiled;
    if (options.loss == LossKernel::chunked)
        return torch_chunked_loss(block, logits, labels, vocabulary, compiled);
    if (options.loss == LossKernel::vocab_parallel)
        return torch_vocab_parallel_loss(block, logits, labels, vocabulary);
    return torch_eager_loss(block, logits, labels, vocabulary);
}

}  // namespace

TensorId output_layer_with_loss(BlockBuilder& block, TensorId x, std::uint64_t hidden,
                                std::uint64_t vocabulary, std::vector<BlockBuilder::ParameterId> parameters,
                                TensorId labels, const LoweringOptions& options, const LogitOptions& how) {
    const LossKernel kernel = options.loss;
    const bool torch = block.style().torch_modules && kernel != LossKernel::fused;
    if (kernel == LossKernel::chunked && !torch)
        return chunked_loss(block, x, hidden, vocabulary, std::move(parameters), labels);
    TensorId logits = block.linear("lm_head", x, hidden, vocabulary, std::move(parameters), Category::logits);
    if (how.scales) logits = scaled(block, logits, vocabulary);
    if (how.caps) logits = capped(block, logits, vocabulary);
    if (torch) return torch_loss(block, logits, labels, vocabulary, options);
    if (kernel == LossKernel::fused) return fused_loss(block, logits, labels, vocabulary);
    return eager_loss(block, logits, labels, vocabulary, options.upcasts());
}

}  // namespace zeroplan
