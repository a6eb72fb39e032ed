#pragma once
#include <random>

#include "core/cost/tiny_plan.hpp"

namespace zeroplan::test {

/// What `work` and the operations of random programs refer to.
inline const std::vector<Buffer> work_buffers{
    {.role = BufferRole::parameters, .dtype = DType::bf16, .elements = 64'000'000},
    {.role = BufferRole::gathered_parameters, .dtype = DType::bf16, .elements = 1000}};

/// An operation of the compute stream that takes time in proportion to `elements`.
inline OptimizerStep work(std::uint64_t elements) {
    return {.parameters = {0}, .elements = elements};
}

/// Forty operations of every kind with random waits; half of the collectives on stream `second`.
inline std::vector<Operation> random_operations(std::mt19937& random, Stream second) {
    const auto upto = [&random](std::uint32_t n) {
        return std::uniform_int_distribution<std::uint32_t>(0, n)(random);
    };
    std::vector<Operation> operations;
    for (OperationId id = 0; id < 40; ++id) {
        std::vector<OperationId> waits;
        for (std::uint32_t w = upto(3); id > 0 && w > 1; --w) waits.push_back(upto(id - 1));
        switch (upto(7)) {
            case 0:
                operations.push_back(host(Free{1}, waits));
                break;
            case 1:
                operations.push_back(host(Wait{}, waits));
                break;
            case 2:
                operations.push_back(host(Allocate{1}));
                break;
            case 3:
                operations.push_back(on(Stream::gather, all_gather(1'000'000 * (1 + upto(50))), waits));
                break;
            case 4:
                operations.push_back(on(second, reduce_scatter(1'000'000 * (1 + upto(50))), waits));
                break;
            default:
                operations.push_back(on(Stream::compute, work(1'000'000 * upto(90)),
                                        upto(1) == 0 ? waits : std::vector<OperationId>{}));
        }
    }
    return operations;
}

}  // namespace zeroplan::test
