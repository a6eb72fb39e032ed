#pragma once
#include "architectures/pooled_classes.hpp"
#include "engines/megatron_rank_block.hpp"

namespace zeroplan {

/// What Megatron pretrains BERT with, whole on every tensor-parallel rank but for the output layer: dense,
/// GELU and norm in front of it, and two classes of the pooled first token. source: megatron/core/models/bert
/// bert_model.py, bert_lm_head.py, pooler.py.
class BertHeads {
public:
    /// Declares what is registered ahead of the output layer.
    explicit BertHeads(RankBlock& rank);
    void declare_classes();
    /// From the final norm's output to what the output layer reads.
    RankBlock::TensorId write(RankBlock::TensorId x);
    void size(BlockKind& head) const { classes_.size(head); }

private:
    RankBlock& rank_;
    std::uint64_t hidden_;
    RankBlock::Parameters dense_, norm_, binary_, pooler_;
    PooledClasses classes_;
};

}  // namespace zeroplan
