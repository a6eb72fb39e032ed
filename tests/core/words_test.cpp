#include "zeroplan/words.hpp"

#include <set>

#include <gtest/gtest.h>

#include "zeroplan/error.hpp"

namespace zeroplan {
namespace {

template <typename Enum>
class Words : public testing::Test {};
using Enums =
    testing::Types<EngineKind, Optimizer, OptimizerImplementation, Recompute, AttentionKernel, LossKernel,
                   Kernels, PipelineSchedule, OffloadTarget, GradientSync, IntraNode, InterNodeKind>;
TYPED_TEST_SUITE(Words, Enums);

TYPED_TEST(Words, StandForOneEnumeratorEach) {
    std::set<std::string_view> seen;
    std::size_t number = 0;
    for (const Word<TypeParam>& word : words<TypeParam>()) {
        EXPECT_EQ(static_cast<std::size_t>(word.value), number++) << word.text;  // none left out
        EXPECT_TRUE(seen.insert(word.text).second) << word.text;
        EXPECT_EQ(to_string(word.value), word.text);
        EXPECT_EQ(from_word<TypeParam>(word.text), word.value);
    }
    EXPECT_FALSE(from_word<TypeParam>("no such word"));
    EXPECT_FALSE(from_word<TypeParam>(""));
}

TEST(WordList, IsInTheOrderOfTheFormat) {
    EXPECT_EQ(word_list<Recompute>(), "none, selective, selective_op, selective_layer, full");
    EXPECT_EQ(word_list<PipelineSchedule>(), "1f1b, gpipe, interleaved");
}

TEST(OptimizerStateTensors, FollowTheOptimizer) {
    EXPECT_EQ(optimizer_state_tensors(Optimizer::sgd), 0U);
    EXPECT_EQ(optimizer_state_tensors(Optimizer::sgd_momentum), 1U);
    EXPECT_EQ(optimizer_state_tensors(Optimizer::adam), 2U);
    EXPECT_EQ(optimizer_state_tensors(Optimizer::adamw), 2U);
    EXPECT_THROW(optimizer_state_tensors(Optimizer::adafactor), Error);
}

TEST(PeakFlopPerS, IsZeroForWhatAGpuLacks) {
    GpuSpec gpu;
    gpu.fp16_flop_per_s = 125e12;
    EXPECT_EQ(peak_flop_per_s(gpu, DType::fp16), 125e12);
    EXPECT_EQ(peak_flop_per_s(gpu, DType::bf16), 0);
    EXPECT_EQ(peak_flop_per_s(gpu, DType::int64), 0);
}

}  // namespace
}  // namespace zeroplan
