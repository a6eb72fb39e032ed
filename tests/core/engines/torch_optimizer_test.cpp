#include "engines/torch_optimizer.hpp"

#include <gtest/gtest.h>

namespace zeroplan {
namespace {

std::uint64_t bytes(const std::vector<OptimizerTensor>& tensors) {
    std::uint64_t sum = 0;
    for (const OptimizerTensor& tensor : tensors) sum += tensor.elements * bytes_per_element(tensor.dtype);
    return sum;
}

TrainingConfig with(Optimizer optimizer, OptimizerImplementation implementation) {
    TrainingConfig training;
    training.optimizer = optimizer;
    training.optimizer_implementation = implementation;
    return training;
}

TEST(OptimizerTensors, CountBytesAParameter) {
    using enum OptimizerImplementation;
    const std::uint64_t n = 1 << 20;
    const std::vector<std::uint64_t> shape{1024, 1024};
    EXPECT_EQ(bytes(optimizer_tensors(with(Optimizer::adamw, foreach), n, shape)), 8 * n);
    EXPECT_EQ(bytes(optimizer_tensors(with(Optimizer::adamw, fused), n, shape)), 8 * n + 4);
    EXPECT_EQ(bytes(optimizer_tensors(with(Optimizer::sgd, fused), n, shape)), 0U);
    EXPECT_EQ(bytes(optimizer_tensors(with(Optimizer::adamw_8bit, fused), n, shape)), 2 * (n + 4 * n / 256));
    EXPECT_EQ(bytes(optimizer_tensors(with(Optimizer::adamw_4bit, fused), n, shape)),
              2 * (n / 2 + 4 * n / 128));
    EXPECT_EQ(bytes(optimizer_tensors(with(Optimizer::adamw_fp8, fused), n, shape)), 2 * (n + 4 * n / 256));
    EXPECT_EQ(bytes(optimizer_tensors(with(Optimizer::adafactor, for_loop), n, shape)), 4U * (1024 + 1024));
    EXPECT_EQ(bytes(optimizer_tensors(with(Optimizer::muon, fused), n, shape)), 4 * n);
}

TEST(OptimizerTensors, LeaveSmallTensorsUnquantised) {
    EXPECT_EQ(
        bytes(optimizer_tensors(with(Optimizer::adamw_8bit, OptimizerImplementation::fused), 4095, {4095})),
        8U * 4095);
}

TEST(StepTemporaries, DependOnTheImplementation) {
    using enum OptimizerImplementation;
    const std::vector<std::uint64_t> owned{100, 300, 0};
    EXPECT_EQ(bytes(step_temporaries(with(Optimizer::adamw, fused), owned).all_at_once), 0U);
    EXPECT_EQ(bytes(step_temporaries(with(Optimizer::adamw, foreach), owned).all_at_once), 4U * 400);
    EXPECT_EQ(bytes(step_temporaries(with(Optimizer::adamw, for_loop), owned).all_at_once), 4U * 2 * 300);
    EXPECT_EQ(bytes(step_temporaries(with(Optimizer::sgd, for_loop), owned).all_at_once), 0U);
}

}  // namespace
}  // namespace zeroplan
