#include "engines/deepspeed_coordinator.hpp"

#include <gtest/gtest.h>

#include <ostream>

#include "core/engines/torch_scenarios.hpp"

namespace zeroplan {
namespace {

/// What one micro-batch of Llama-2-7B gathers.
struct Gathered {
    std::uint64_t peak_live = 0;  ///< elements
    std::uint64_t gathers = 0, elements = 0;
    friend bool operator==(const Gathered&, const Gathered&) = default;
};
std::ostream& operator<<(std::ostream& out, const Gathered& g) {
    return out << g.peak_live << " live, " << g.gathers << " gathers of " << g.elements;
}

/// Modules of a layer in the order of forward, one a tensor.
constexpr const char* layer_modules[] = {"input_layernorm",  "self_attn.q_proj", "self_attn.k_proj",
                                         "self_attn.v_proj", "self_attn.o_proj", "post_attention_layernorm",
                                         "mlp.gate_proj",    "mlp.up_proj",      "mlp.down_proj"};

/// Forward and backward: embedding, 32 layers, norm, output; then the same backwards, where `recompute` has
/// every layer run forward again before its own backward.
std::vector<ModuleVisit> order_of(const ModelSpec& model, bool recompute) {
    const auto visit = [&](const std::string& name) -> ModuleVisit {
        for (std::uint32_t p = 0; p < model.parameters.size(); ++p)
            if (model.parameters[p].name == name) return {{p}};
        ADD_FAILURE() << name;
        return {};
    };
    std::vector<std::vector<ModuleVisit>> layers(32);
    for (std::size_t layer = 0; layer < layers.size(); ++layer)
        for (const char* module : layer_modules)
            layers[layer].push_back(
                visit("model.layers." + std::to_string(layer) + "." + module + ".weight"));
    const ModuleVisit embedding = visit("model.embed_tokens.weight"), norm = visit("model.norm.weight"),
                      head = visit("lm_head.weight");
    std::vector<ModuleVisit> all{embedding};
    for (const auto& layer : layers) all.insert(all.end(), layer.begin(), layer.end());
    all.insert(all.end(), {norm, head, head, norm});
    for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
        if (recompute) all.insert(all.end(), layer->begin(), layer->end());
        all.insert(all.end(), layer->rbegin(), layer->rend());
    }
    all.push_back(embedding);
    return all;
}

Gathered gathered(const DeepSpeedOptions& options, bool recompute = false) {
    const ModelSpec model = build_llama(llama_2_7b_config(), torch_lowering());
    TrainingConfig training;
    const FlatGroup group;
    const DeepSpeedRank rank{
        .model = model, .training = training, .options = options, .group = group, .ranks = 8};
    StepProgram program;
    Section section;
    ProgramBuilder builder(program);
    builder.begin(section);
    const std::vector<ModuleVisit> order = order_of(model, recompute);
    DeepSpeedCoordinator coordinator(rank, builder, order);
    std::vector<BufferId> persistent(model.parameters.size(), no_buffer), shards(model.parameters.size(), 0);
    for (std::uint32_t p = 0; p < persistent.size(); ++p)
        if (coordinator.is_persistent(p)) persistent[p] = 0;
    builder.declare({});
    coordinator.use(persistent, shards);
    coordinator.begin_micro_batch();
    for (std::size_t v = 0; v < order.size(); ++v) {
        coordinator.enter();
        coordinator.leave();
    }
    coordinator.end_micro_batch();
    Gathered found{.peak_live = coordinator.peak_live()};
    for (const Operation& operation : section.operations)
        if (const auto* c = std::get_if<Collective>(&operation.body)) {
            ++found.gathers;
            found.elements += c->elements;
        }
    return found;
}

// Every row of a simulation of the coordinator's rules by a separate program (z3sim.py), without and with
// activation checkpointing.
constexpr std::uint64_t unlimited = 10'000'000'000;

TEST(DeepSpeedCoordinator, OvershootsMaxLiveParametersByDefault) {
    EXPECT_EQ(gathered({}), (Gathered{1'126'436'864, 391, 12'490'637'312}));
    EXPECT_EQ(gathered({}, true), (Gathered{1'126'436'864, 311, 12'535'726'080}));
}

TEST(DeepSpeedCoordinator, HoldsLessWithoutPrefetch) {
    const DeepSpeedOptions options{.prefetch_bucket_size = 0};
    EXPECT_EQ(gathered(options), (Gathered{502'534'144, 439, 12'974'030'848}));
    EXPECT_EQ(gathered(options, true), (Gathered{333'713'408, 444, 13'142'851'584}));
}

TEST(DeepSpeedCoordinator, GathersMoreWithoutReuse) {
    const DeepSpeedOptions options{.max_reuse_distance = 0};
    EXPECT_EQ(gathered(options), (Gathered{1'126'436'864, 392, 12'621'709'312}));
    EXPECT_EQ(gathered(options, true), (Gathered{1'126'436'864, 344, 14'109'638'656}));
}

TEST(DeepSpeedCoordinator, HoldsOneModuleWithoutPrefetchAndReuse) {
    const DeepSpeedOptions options{.prefetch_bucket_size = 0, .max_reuse_distance = 0};
    EXPECT_EQ(gathered(options), (Gathered{131'338'240, 452, 13'476'298'752}));
    EXPECT_EQ(gathered(options, true), (Gathered{131'338'240, 676, 19'952'304'128}));
}

TEST(DeepSpeedCoordinator, FollowsMaxLiveParameters) {
    const DeepSpeedOptions options{.max_live_parameters = 300'000'000};
    EXPECT_EQ(gathered(options), (Gathered{502'534'144, 311, 12'974'030'848}));
    EXPECT_EQ(gathered(options, true), (Gathered{423'890'944, 344, 13'142'851'584}));
}

TEST(DeepSpeedCoordinator, HoldsTheWholeModelWhereReuseIsUnlimited) {
    const DeepSpeedOptions options{.max_live_parameters = unlimited, .max_reuse_distance = unlimited};
    EXPECT_EQ(gathered(options), (Gathered{6'738'415'616, 122, 8'443'133'952}));
    EXPECT_EQ(gathered(options, true), (Gathered{6'738'415'616, 131, 9'050'259'456}));
}

}  // namespace
}  // namespace zeroplan
