#pragma once
#include <vector>

#include "core/cost/random_program.hpp"

namespace zeroplan::test {

/// A ZeRO-3 step in small: gathers with prefetch and release, compute, reduce-scatter on one or two streams.
inline std::vector<Operation> sharded_step(std::uint32_t layers, std::uint64_t elements, Stream reduce,
                                           std::uint64_t work_elements) {
    std::vector<Operation> operations;
    const auto add = [&operations](Operation operation) {
        operations.push_back(std::move(operation));
        return static_cast<OperationId>(operations.size() - 1);
    };
    OperationId next = add(on(Stream::gather, all_gather(elements)));
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
        const OperationId gathered = next;
        if (layer + 1 < layers) next = add(on(Stream::gather, all_gather(elements)));
        const OperationId first = add(on(Stream::compute, work(work_elements), {gathered}));
        const OperationId done =
            add(on(Stream::compute, work(2 * work_elements + layer * 1'000'000), {first}));
        const OperationId reduced = add(on(reduce, reduce_scatter(elements), {done}));
        add(host(Free{1}, {layer % 2 == 0 ? done : reduced}));
    }
    return operations;
}

}  // namespace zeroplan::test
