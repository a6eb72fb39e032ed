#include "architectures/adapters.hpp"

#include <gtest/gtest.h>

#include "core/engines/torch_scenarios.hpp"

namespace zeroplan {
namespace {

TEST(Adapter, TrainsTwoMatricesATarget) {
    // Rank 8 on q and v of Llama-2-7B: 2 · 32 · 8 · (4096 + 4096), as LitGPT prints.
    ModelSpec model = build_llama(llama_2_7b_config(), torch_lowering());
    apply_adapter(model, {.rank = 8, .targets = {"q_proj", "v_proj"}});
    EXPECT_EQ(model.trainable_parameter_count(), 4'194'304U);
    EXPECT_EQ(model.parameter_count(), 6'738'415'616U + 4'194'304U);
}

/// Falcon 7B's query, key and value are one linear: rank 8 on query and value alone, as LitGPT adapts it.
TEST(Adapter, AdaptsPartsOfAPackedProjection) {
    ModelSpec model = build_decoder(falcon_7b_config(), torch_lowering());
    apply_adapter(model, {.rank = 8, .targets = {"q_proj", "v_proj"}});
    EXPECT_EQ(model.trainable_parameter_count(), 32U * (2 * 8 * 4544 + (4544 + 64) * 8));
}

TEST(Adapter, CoversEveryLinearOfALayer) {
    ModelSpec model = build_llama(llama_2_7b_config(), torch_lowering());
    apply_adapter(model, {.rank = 16, .all_linear = true, .targets = {}});
    EXPECT_EQ(model.trainable_parameter_count(), 32U * 16U * (8U * 4096U + 3U * (4096U + 11008U)));
}

TEST(Adapter, ForgetsWhatOnlyFrozenWeightsWouldRead) {
    ModelSpec model = build_llama(small_llama(), torch_lowering());
    apply_adapter(model, {.rank = 4, .targets = {"q_proj"}});
    for (const Operator& op : model.block_kinds[model.blocks[1].kind].operators) {
        if (op.kind != OperatorKind::linear) continue;
        const bool adapter = op.name.find("lora") != std::string::npos;
        EXPECT_EQ(op.saved.empty(), !adapter) << op.name;
    }
}

TEST(Adapter, WritesQuantisedWeightsOutForEachProduct) {
    ModelSpec model = build_llama(small_llama(), torch_lowering());
    apply_adapter(model,
                  {.rank = 4, .all_linear = true, .targets = {}, .base_storage = ParameterStorage::nf4});
    for (const Operator& op : model.block_kinds[model.blocks[1].kind].operators) {
        if (op.kind != OperatorKind::linear || op.name.find("lora") != std::string::npos) continue;
        EXPECT_EQ(op.forward_workspace.constant, op.in_features * op.out_features) << op.name;
        EXPECT_EQ(op.backward_workspace.constant, op.in_features * op.out_features) << op.name;
    }
}

TEST(Adapter, NamesTheLinearsThatThereAre) {
    ModelSpec model = build_llama(small_llama(), torch_lowering());
    try {
        apply_adapter(model, {.rank = 4, .targets = {"query"}});
        FAIL() << "a target that isn't there was accepted";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_input);
        EXPECT_NE(error.hint().find("q_proj"), std::string::npos);
    }
}

TEST(Adapter, RefusesATargetBesideOnesThatAreThere) {
    ModelSpec model = build_llama(small_llama(), torch_lowering());
    try {
        apply_adapter(model, {.rank = 4, .targets = {"q_proj", "nonsense"}});
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.message()).find("nonsense"), std::string::npos);
        EXPECT_EQ(error.place().pointer, "/training/adapter/targets");
    }
}

TEST(Freeze, StopsTrainingWhatAPatternNames) {
    ModelSpec model = build_llama(small_llama(), torch_lowering());
    const std::uint64_t all = model.trainable_parameter_count();
    freeze_parameters(model, {"embed_tokens", "layers.*.mlp"});
    EXPECT_EQ(model.trainable_parameter_count(), all - 320 * 64 - 3 * 3 * 64 * 160);
    EXPECT_THROW(freeze_parameters(model, {"vision"}), Error);
}

}  // namespace
}  // namespace zeroplan
