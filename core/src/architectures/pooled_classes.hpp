#pragma once
#include "architectures/block_builder.hpp"

namespace zeroplan {

/// Classes of a sequence from its first token: tanh of a dense layer, a linear, a loss of its own. It stands
/// beside another head in the same block; size() is to be called once that block is finished.
class PooledClasses {
public:
    using TensorId = BlockBuilder::TensorId;
    using Parameters = std::vector<BlockBuilder::ParameterId>;

    void write(BlockBuilder& block, TensorId x, std::uint64_t hidden, std::uint64_t classes,
               const Parameters& pooler, const Parameters& classifier);
    /// What was written works on one token a sequence.
    void size(BlockKind& kind) const;

private:
    TensorId first_ = 0, last_ = 0;
};

}  // namespace zeroplan
