#include "engines/deepspeed_coordinator.hpp"

#include <gtest/gtest.h>

#include "core/engines/torch_scenarios.hpp"

namespace zeroplan {
namespace {

/// Forward and backward of Llama-2-7B, a module a tensor: embedding, 32 × (norm, q, k, v, o, norm, gate, up,
/// down), norm, output; then the same backwards.
std::vector<ModuleVisit> order_of(const ModelSpec& model) {
    const auto find = [&](const std::string& name) {
        for (std::uint32_t p = 0; p < model.parameters.size(); ++p)
            if (model.parameters[p].name == name) return p;
        ADD_FAILURE() << name;
        return 0U;
    };
    std::vector<ModuleVisit> forward{{{find("model.embed_tokens.weight")}}};
    for (int layer = 0; layer < 32; ++layer)
        for (const char* module : {"input_layernorm", "self_attn.q_proj", "self_attn.k_proj",
                                   "self_attn.v_proj", "self_attn.o_proj", "post_attention_layernorm",
                                   "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})
            forward.push_back({{find("model.layers." + std::to_string(layer) + "." + module + ".weight")}});
    forward.push_back({{find("model.norm.weight")}});
    forward.push_back({{find("lm_head.weight")}});
    std::vector<ModuleVisit> all = forward;
    all.insert(all.end(), forward.rbegin(), forward.rend());
    return all;
}

std::uint64_t peak_live(const DeepSpeedOptions& options) {
    const ModelSpec model = build_llama(llama_2_7b_config(), torch_lowering());
    TrainingConfig training;
    const FlatGroup group;
    const DeepSpeedRank rank{
        .model = model, .training = training, .options = options, .group = group, .ranks = 8};
    StepProgram program;
    Section section;
    ProgramBuilder builder(program);
    builder.begin(section);
    DeepSpeedCoordinator coordinator(rank, builder, order_of(model));
    std::vector<BufferId> persistent(model.parameters.size(), no_buffer), shards(model.parameters.size(), 0);
    for (std::uint32_t p = 0; p < persistent.size(); ++p)
        if (coordinator.is_persistent(p)) persistent[p] = 0;
    builder.declare({});
    coordinator.use(persistent, shards);
    coordinator.begin_micro_batch();
    for (std::size_t v = 0; v < order_of(model).size(); ++v) {
        coordinator.enter();
        coordinator.leave();
    }
    coordinator.end_micro_batch();
    return coordinator.peak_live();
}

// The figures come from a simulation of the coordinator's rules by a separate program.

TEST(DeepSpeedCoordinator, OvershootsMaxLiveParametersByDefault) {
    EXPECT_EQ(peak_live({}), 1'126'436'864U);
}

TEST(DeepSpeedCoordinator, HoldsLessWithoutPrefetch) {
    EXPECT_EQ(peak_live({.prefetch_bucket_size = 0}), 502'534'144U);
}

TEST(DeepSpeedCoordinator, HoldsOneModuleWithoutPrefetchAndReuse) {
    EXPECT_EQ(peak_live({.prefetch_bucket_size = 0, .max_reuse_distance = 0}), 131'338'240U);
}

TEST(DeepSpeedCoordinator, FollowsMaxLiveParameters) {
    EXPECT_EQ(peak_live({.max_live_parameters = 300'000'000}), 502'534'144U);
}

TEST(DeepSpeedCoordinator, HoldsTheWholeModelWhereReuseIsUnlimited) {
    EXPECT_EQ(peak_live({.max_live_parameters = 10'000'000'000, .max_reuse_distance = 10'000'000'000}),
              6'738'415'616U);
}

}  // namespace
}  // namespace zeroplan
