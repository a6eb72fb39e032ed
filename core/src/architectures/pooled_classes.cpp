#include "architectures/pooled_classes.hpp"

#include "architectures/fixed_length.hpp"

namespace zeroplan {

void PooledClasses::write(BlockBuilder& block, TensorId x, std::uint64_t hidden, std::uint64_t classes,
                          const Parameters& pooler, const Parameters& classifier) {
    first_ = static_cast<TensorId>(block.tensor_count());
    const TensorId token = block.tensor("pooler.first_token", hidden, block.style().residual());
    block.add(
        {.name = "pooler.first_token", .kind = OperatorKind::elementwise, .inputs = {x}, .outputs = {token}});
    const TensorId pooled =
        block.activation("pooler.activation", block.linear("pooler.dense", token, hidden, hidden, pooler),
                         hidden, ActivationFunction::tanh);
    const TensorId logits =
        block.linear("sequence_classes", pooled, hidden, classes, classifier, Category::logits);
    const TensorId log_softmax =
        block.tensor("sequence_classes.log_softmax", classes, TensorDType::fp32, Category::logits);
    block.add({.name = "sequence_classes.loss",
               .kind = OperatorKind::cross_entropy,
               .inputs = {logits},
               .outputs = {log_softmax},
               .saved = {log_softmax},
               .forward_flops = {.per_token = 5 * classes},
               .backward_flops = {.per_token = 3 * classes}});
    last_ = static_cast<TensorId>(block.tensor_count());
}

void PooledClasses::size(BlockKind& kind) const {
    std::vector<std::uint32_t> others;
    for (std::uint32_t t = 0; t < kind.tensors.size(); ++t)
        if (t < first_ || t >= last_) others.push_back(t);
    fix_length(kind, 1, others);
}

}  // namespace zeroplan
