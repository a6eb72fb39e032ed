#include "fold/layer_run.hpp"

#include <gtest/gtest.h>

#include "zeroplan/io.hpp"

namespace zeroplan {
namespace {

ModelSpec preset(const char* name) {
    return resolve_scenario({.text = std::string(R"({"schema": 1, "model": {"preset": ")") + name +
                                     R"("}, "cluster": {"topology": "dgx-h100"}})"})
        .model;
}

TEST(LayerRun, IsTheLayersBetweenEmbeddingAndHead) {
    EXPECT_EQ(longest_run(preset("llama-3-70b")), (LayerRun{1, 80}));
    EXPECT_EQ(longest_run(preset("gpt2")), (LayerRun{1, 12}));
    // The first three layers of DeepSeek V3 have no experts.
    EXPECT_EQ(longest_run(preset("deepseek-v3")), (LayerRun{4, 58}));
    // Its two layers are kinds of their own: the second takes a loss.
    EXPECT_EQ(longest_run(preset("tutorial-mlp")), (LayerRun{0, 1}));
    EXPECT_EQ(longest_run(ModelSpec{}), (LayerRun{}));
}

TEST(LayerRun, OfAllLayersIsTheModelItself) {
    for (const char* name : {"llama-3-8b", "gpt2", "deepseek-v3", "t5-11b", "bert-large-uncased"}) {
        const ModelSpec model = preset(name);
        ModelSpec whole = model;
        whole.decoder = {};
        whole.encoder = {};
        whole.encoder_decoder = {};
        const LayerRun run = longest_run(model);
        EXPECT_EQ(shortened(model, run, run.count), whole) << name;
    }
}

/// The parameters that 70 layers of Llama 3 70B would have had, and the tied table of GPT-2 found again.
TEST(LayerRun, TakesItsParametersAlong) {
    const ModelSpec model = preset("llama-3-70b");
    const ModelSpec shorter = shortened(model, longest_run(model), 10);
    constexpr std::uint64_t layer = 2 * 8192ULL * 8192 + 2 * 1024 * 8192ULL + 3 * 8192 * 28672ULL + 2 * 8192;
    EXPECT_EQ(shorter.parameter_count(), model.parameter_count() - 70 * layer);
    EXPECT_EQ(shorter.layers, 10U);
    EXPECT_EQ(shorter.blocks.size(), 12U);
    EXPECT_EQ(shorter.parameters[shorter.blocks.back().parameters.back()].name, "lm_head.weight");

    const ModelSpec tied = preset("gpt2");
    const ModelSpec few = shortened(tied, longest_run(tied), 2);
    const Parameter& head = few.parameters[few.blocks.back().parameters.back()];
    ASSERT_TRUE(head.shared_with);
    EXPECT_EQ(few.parameters[*head.shared_with].name, tied.parameters[0].name);
}

}  // namespace
}  // namespace zeroplan
