#include "engines/megatron_bert.hpp"

namespace zeroplan {

using TensorId = RankBlock::TensorId;

BertHeads::BertHeads(RankBlock& rank)
    : rank_(rank),
      hidden_(rank.context().decoder.hidden_size),
      dense_(rank.builder().linear_parameters("lm_head.dense", hidden_, hidden_, true)),
      norm_(rank.norm_parameters("lm_head.layer_norm", hidden_)) {}

void BertHeads::declare_classes() {
    binary_ = rank_.builder().linear_parameters("binary_head", hidden_, 2, true);
    pooler_ = rank_.builder().linear_parameters("pooler.dense", hidden_, hidden_, true);
}

TensorId BertHeads::write(TensorId x) {
    classes_.write(rank_.builder(), x, hidden_, 2, pooler_, binary_);
    const TensorId dense = rank_.duplicated("lm_head.dense", x, hidden_, hidden_, dense_);
    const std::uint64_t width = rank_.context().between(hidden_);
    const TensorId active =
        rank_.activation("lm_head.gelu", dense, {.per_token = width}, false, ActivationFunction::gelu);
    return rank_.layer_norm("lm_head.layer_norm", active, hidden_, norm_);
}

}  // namespace zeroplan
