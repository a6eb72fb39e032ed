#pragma once
#include "engines/program_builder.hpp"

namespace zeroplan {

/// What one stage has of the gradient of a tied word embedding.
struct TiedGradient {
    std::uint32_t copy = 0;       ///< parameter, StageModel::tied_copy
    BufferId buffer = no_buffer;  ///< that holds it, among others perhaps
    DType dtype = DType::fp32;
    std::uint64_t elements = 0;
};

/// A pipeline's first and last stage each hold a copy of a tied word embedding, and each has a part of its
/// gradient: both are replaced by their sum, so that both copies are updated alike. `stream` is the one that
/// the engine reduces its other gradients on.
void all_reduce_tied_gradient(ProgramBuilder& builder, Stream stream, const TiedGradient& gradient);

}  // namespace zeroplan
