#pragma once
#include <utility>
#include <vector>

#include "engines/program_builder.hpp"

namespace zeroplan {

/// Gradients that an operator makes beside those that are there, until they are added to them:
/// torch.autograd's second gradient of a tied weight, Megatron's before it goes into the gradient buffer.
class PendingSums {
public:
    /// `gradient`, once it is computed, goes into `sum`.
    void add(BufferId gradient, BufferId sum) { pending_.push_back({gradient, sum}); }

    /// Adds each to its sum and frees it.
    void add_up(ProgramBuilder& builder) {
        for (const auto& [gradient, sum] : pending_) {
            builder.on_stream(Stream::compute,
                              Accumulate{.from = {gradient}, .to = {sum}, .always_add = true});
            builder.free(gradient);
        }
        pending_.clear();
    }

private:
    std::vector<std::pair<BufferId, BufferId>> pending_;
};

}  // namespace zeroplan
