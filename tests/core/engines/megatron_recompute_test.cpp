#include "engines/megatron_recompute.hpp"

#include <gtest/gtest.h>

#include <map>

#include "core/engines/megatron_scenarios.hpp"
#include "core/engines/program_hazards.hpp"

namespace zeroplan {
namespace {

Scenario with_modules(const std::string& family, std::vector<std::string> modules, MegatronCase wanted = {}) {
    wanted.tied = false;
    Scenario scenario = megatron_scenario(family, wanted);
    scenario.training.recompute_modules = std::move(modules);
    return scenario;
}

/// How often operators run again in a step, by name.
std::map<std::string, int> again(const Plan& plan) {
    std::map<std::string, int> names;
    const ModelSpec& model = model_of(plan, 0);
    for (const Section& section : plan.programs[0].step)
        for (const Operation& operation : section.operations)
            if (const auto* compute = std::get_if<Compute>(&operation.body);
                compute != nullptr && compute->phase == ComputePhase::recompute)
                ++names[model.block_kinds[model.blocks[compute->block].kind].operators[compute->op].name];
    return names;
}

std::uint64_t peak(const Scenario& scenario) {
    return make_plan(scenario).rank_groups[0].steady.allocated.count();
}

/// Nothing is read after it has gone, and nothing stays that should go.
std::vector<std::string> hazards_of(const Scenario& scenario) {
    return hazards(make_plan(scenario).programs[0]);
}

// 8 layers, hidden 64, ffn 256, 256 tokens, bf16. The MLP's first product (twice the width for gated ones)
// and its activation are made again, one layer at a time.
TEST(MegatronRecompute, OfTheMlpRunsItsThreeOperatorsAgain) {
    const Scenario all = with_modules("llama", {}), mlp = with_modules("llama", {"mlp"});
    const std::map<std::string, int> names = again(make_plan(mlp));
    EXPECT_EQ(names, (std::map<std::string, int>{
                         {"mlp.activation", 8}, {"mlp.linear_fc1", 8}, {"mlp.linear_fc2", 8}}));
    EXPECT_TRUE(again(make_plan(all)).empty());
    EXPECT_TRUE(hazards_of(mlp).empty());
    const std::uint64_t tokens = 256, layer = 2 * tokens * (2 * 256 + 256);
    EXPECT_GE(peak(all) - peak(mlp), 5 * layer);
    EXPECT_LE(peak(all) - peak(mlp), 8 * layer);
}

// Transformer Engine's linears contain the norms of a dense layer; Megatron's own don't.
TEST(MegatronRecompute, OfNormsNeedsThemToBeModules) {
    EXPECT_TRUE(again(make_plan(with_modules("llama", {"norm"}))).empty());
    const Scenario local =
        with_modules("llama", {"norm"}, {.megatron_json = R"({"transformer_impl": "local"})"});
    EXPECT_EQ(again(make_plan(local)),
              (std::map<std::string, int>{{"input_layernorm", 8}, {"pre_mlp_layernorm", 8}}));
    Scenario kept = local;
    kept.training.recompute_modules.clear();
    EXPECT_LT(peak(local), peak(kept));
    // The MLP's input is the norm's output: that runs again first.
    Scenario both = local;
    both.training.recompute_modules = {"mlp", "norm"};
    EXPECT_EQ(again(make_plan(both)).size(), 5U);
    EXPECT_LT(peak(both), peak(local));
    EXPECT_TRUE(hazards_of(both).empty());
}

// Seven of eight layers have experts.
TEST(MegatronRecompute, OfExpertsRunsThemAllOrTheirActivationAgain) {
    const std::map<std::string, int> moe = again(make_plan(with_modules("deepseek", {"moe"})));
    EXPECT_EQ(moe.at("router"), 7);
    EXPECT_EQ(moe.at("experts.linear_fc1"), 7);
    EXPECT_EQ(moe.at("shared_experts.linear_fc2"), 7);
    EXPECT_EQ(moe.count("mlp.linear_fc1"), 0U);
    EXPECT_EQ(again(make_plan(with_modules("deepseek", {"moe_activation"}))),
              (std::map<std::string, int>{{"experts.activation", 7}}));
    const std::uint64_t none = peak(with_modules("deepseek", {}));
    EXPECT_LT(peak(with_modules("deepseek", {"moe"})), peak(with_modules("deepseek", {"moe_activation"})));
    EXPECT_LT(peak(with_modules("deepseek", {"moe_activation"})), none);
    EXPECT_TRUE(hazards_of(with_modules("deepseek", {"moe", "moe_activation", "norm", "mlp"})).empty());
}

TEST(MegatronRecompute, OfLatentUpProjectionsComesBeforeTheAttentionThatReadsThem) {
    const std::map<std::string, int> names =
        again(make_plan(with_modules("deepseek", {"mla_up_projection", "core_attention"})));
    EXPECT_EQ(names.at("linear_kv_up_proj"), 8);
    EXPECT_EQ(names.at("rope"), 8);
    EXPECT_EQ(names.at("core_attention"), 8);
    EXPECT_LT(peak(with_modules("deepseek", {"mla_up_projection"})), peak(with_modules("deepseek", {})));
    EXPECT_TRUE(hazards_of(with_modules("deepseek", {"mla_up_projection", "core_attention"})).empty());
}

// It is what `selective` does.
TEST(MegatronRecompute, OfTheCoreIsSelectiveRecompute) {
    const MegatronCase eager{.attention = AttentionKernel::eager};
    Scenario selective = with_modules("gpt", {}, eager);
    selective.training.recompute = Recompute::selective;
    EXPECT_EQ(make_plan(with_modules("gpt", {"core_attention"}, eager)).programs,
              make_plan(selective).programs);
}

TEST(MegatronRecompute, WorksUnderMegatronFsdp) {
    Scenario scenario = with_modules("llama", {"mlp"}, {.data = 2});
    scenario.training.engine = EngineKind::megatron_fsdp;
    scenario.training.zero_stage = 3;
    scenario.training.shard_group = 2;
    EXPECT_EQ(again(make_plan(scenario)).at("mlp.linear_fc1"), 8);
}

std::string refused(const Scenario& scenario) {
    try {
        (void)make_plan(scenario);
    } catch (const Error& error) {
        return error.place().pointer;
    }
    return "";
}

TEST(MegatronRecompute, RefusesModulesThatTheModelHasnt) {
    for (const char* module : {"moe", "moe_activation", "mla_up_projection"})
        EXPECT_EQ(refused(with_modules("llama", {module})), "/training/recompute_modules") << module;
    Scenario full = with_modules("llama", {"mlp"});
    full.training.recompute = Recompute::full;
    EXPECT_EQ(refused(full), "/training/recompute_modules");
    EXPECT_EQ(
        refused(with_modules("gpt", {"mlp"}, {.compute = DType::fp16, .engine_version = "megatron-lm 2021"})),
        "/training/recompute_modules");
}

}  // namespace
}  // namespace zeroplan
