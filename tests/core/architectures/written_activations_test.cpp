#include "architectures/written_activations.hpp"

#include <gtest/gtest.h>

namespace zeroplan {
namespace {

/// Elements a token that backward of the activation alone reads, its input among them.
std::uint64_t saved(const char* activation, std::uint64_t width) {
    BlockBuilder block("block", {.name = "input", .extent = {.per_token = width}});
    const auto out = written_activation(block, "act", 0, width, activation);
    const BlockKind kind = block.finish(out).kind;
    std::vector<bool> read(kind.tensors.size(), false);
    for (const Operator& op : kind.operators)
        for (const std::uint32_t tensor : op.saved) read[tensor] = true;
    std::uint64_t elements = 0;
    for (std::size_t t = 0; t < read.size(); ++t)
        if (read[t]) elements += kind.tensors[t].extent.per_token;
    return elements;
}

// x of the cube, tanh's output, and both factors of the last product.
TEST(WrittenActivations, GeluNewKeepsFourTensors) {
    EXPECT_EQ(saved("gelu_new", 10), 4U * 10);
}

// Two factors of the square (x is one), two of the argument, tanh's output, two of the last product.
TEST(WrittenActivations, GeluFastKeepsSevenTensors) {
    EXPECT_EQ(saved("gelu_fast", 10), 7U * 10);
}

TEST(WrittenActivations, KernelsOfPyTorchAreNoneOfThem) {
    EXPECT_FALSE(is_written_activation("gelu"));
    EXPECT_FALSE(is_written_activation("gelu_pytorch_tanh"));
    EXPECT_TRUE(is_written_activation("gelu_new"));
}

}  // namespace
}  // namespace zeroplan
