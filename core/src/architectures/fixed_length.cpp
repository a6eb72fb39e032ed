#include "architectures/fixed_length.hpp"

#include <algorithm>

#include "zeroplan/units.hpp"

namespace zeroplan {
namespace {

bool has(const std::vector<std::uint32_t>& tensors, std::uint32_t tensor) {
    return std::find(tensors.begin(), tensors.end(), tensor) != tensors.end();
}

std::uint64_t fixed(std::uint64_t per_token, std::uint64_t per_token_pair, std::uint64_t length) {
    return checked_sum(checked_product(per_token, length),
                       checked_product(per_token_pair, checked_product(length, length)));
}

template <class Size>
void fix(Size& size, std::uint64_t length) {
    size.per_sequence =
        checked_sum(size.per_sequence, fixed(size.per_token, size.per_token_pair, length), "elements");
    size.per_token = size.per_token_pair = 0;
}

/// One side of the pairs is fixed, the other as long as the training's sequences.
template <class Size>
void fix_one_side(Size& size, std::uint64_t length) {
    size.per_sequence = checked_sum(size.per_sequence, checked_product(size.per_token, length), "elements");
    size.per_token = checked_product(size.per_token_pair, length);
    size.per_token_pair = 0;
}

}  // namespace

void fix_length(BlockKind& kind, std::uint64_t length, const std::vector<std::uint32_t>& elsewhere,
                const std::vector<std::uint32_t>& crossing) {
    for (std::uint32_t t = 0; t < kind.tensors.size(); ++t) {
        if (has(elsewhere, t)) continue;
        if (has(crossing, t))
            fix_one_side(kind.tensors[t].extent, length);
        else
            fix(kind.tensors[t].extent, length);
    }
    for (Operator& op : kind.operators) {
        const auto all_in = [&](const std::vector<std::uint32_t>& tensors) {
            return std::all_of(op.outputs.begin(), op.outputs.end(),
                               [&](std::uint32_t t) { return has(tensors, t); });
        };
        const bool crosses = std::any_of(op.inputs.begin(), op.inputs.end(), [&](std::uint32_t t) {
            return has(elsewhere, t) || has(crossing, t);
        });
        if (all_in(elsewhere)) continue;
        for (Flops* flops : {&op.forward_flops, &op.backward_flops})
            crosses ? fix_one_side(*flops, length) : fix(*flops, length);
        for (Extent* extent : {&op.forward_workspace, &op.backward_workspace})
            crosses ? fix_one_side(*extent, length) : fix(*extent, length);
    }
}

}  // namespace zeroplan
