#include <gtest/gtest.h>

#include <map>

#include "core/engines/megatron_scenarios.hpp"
#include "core/engines/program_hazards.hpp"
#include "engines/engine.hpp"
#include "engines/megatron_fsdp_layout.hpp"
#include "zeroplan/plan.hpp"
#include "zeroplan/step_timeline.hpp"

namespace zeroplan {
namespace {

Scenario fsdp_scenario(const std::string& family, MegatronCase wanted, std::uint32_t zero_stage) {
    wanted.zero_stage = zero_stage;
    Scenario scenario = megatron_scenario(family, wanted);
    scenario.training.engine = EngineKind::megatron_fsdp;
    return scenario;
}

using Key = std::pair<CollectiveKind, std::uint64_t>;

/// How many collectives of each kind and size a step has in `group`.
std::map<Key, std::uint64_t> collectives_of(const Plan& plan, GroupKind group) {
    std::map<Key, std::uint64_t> found;
    for (const Section& section : plan.programs[0].step)
        for (const Operation& operation : section.operations)
            if (const auto* c = std::get_if<Collective>(&operation.body); c != nullptr && c->group == group)
                found[{c->kind, c->elements}] += section.repeat;
    return found;
}

std::uint64_t total(const std::map<Key, std::uint64_t>& found, CollectiveKind kind) {
    std::uint64_t sum = 0;
    for (const auto& [key, count] : found)
        if (key.first == kind) sum += key.second * count;
    return sum;
}

std::uint64_t of_category(const Plan& plan, Category category) {
    return resident_of(plan, 0, category);
}

/// The GPT of the tests, 4 ranks: a layer of 49,984 parameters fills a bucket of 50,176 (multiples of 4 ·
/// 256); the embeddings, 512 and 128 rows of 64, and the last norm, 2 · 64, one of 41,216 (of 4 · 64).
constexpr std::uint64_t layer = 50'176, rest = 41'216, padded = 8 * layer + rest;
constexpr std::uint64_t parameters = 8 * 49'984 + 41'088;

TEST(MegatronFsdp, KeepsWhatEachStageShards) {
    const auto states = [&](std::uint32_t stage, Category category) {
        return of_category(make_plan(fsdp_scenario("gpt", {.data = 4}, stage)), category);
    };
    // no_shard: the module's own parameters, no padding.
    EXPECT_EQ(states(0, Category::parameters), 2 * parameters);
    EXPECT_EQ(states(0, Category::gradients), 4 * parameters);
    EXPECT_EQ(states(0, Category::master_weights), 4 * parameters);
    EXPECT_EQ(states(1, Category::parameters), 2 * padded);
    EXPECT_EQ(states(1, Category::gradients), 4 * padded);
    EXPECT_EQ(states(1, Category::master_weights), 4 * padded / 4);
    EXPECT_EQ(states(2, Category::parameters), 2 * padded);
    EXPECT_EQ(states(2, Category::gradients), 4 * padded / 4);
    EXPECT_EQ(states(3, Category::parameters), 2 * padded / 4);
    EXPECT_EQ(states(3, Category::gathered_parameters), 2 * rest);  // belongs to no unit
}

TEST(MegatronFsdp, StatesAreOfTheElementsARankOwns) {
    const Plan plan = make_plan(fsdp_scenario("gpt", {.data = 4}, 3));
    // The first rank has no padding.
    EXPECT_EQ(of_category(plan, Category::optimizer_states), 8 * padded / 4);
    EXPECT_GE(4 * of_category(plan, Category::optimizer_states), 8 * parameters);
}

TEST(MegatronFsdp, GathersTwiceAStepAndScattersEveryMicroBatch) {
    const auto found = collectives_of(make_plan(fsdp_scenario("gpt", {.data = 4, .micro_batches = 3}, 3)),
                                      GroupKind::shard_group);
    EXPECT_EQ(found.at({CollectiveKind::all_gather, layer}), 3U * 2 * 8);
    EXPECT_EQ(found.at({CollectiveKind::all_gather, rest}), 1U);
    EXPECT_EQ(found.at({CollectiveKind::reduce_scatter, layer}), 3U * 8);
    EXPECT_EQ(found.at({CollectiveKind::reduce_scatter, rest}), 3U);
}

TEST(MegatronFsdp, OptimCommunicatesOnceAStep) {
    for (const char* options : {"", R"({"overlap_grad_reduce": true, "overlap_param_gather": true})"}) {
        const auto found = collectives_of(
            make_plan(fsdp_scenario("gpt", {.data = 4, .micro_batches = 3, .megatron_json = options}, 1)),
            GroupKind::shard_group);
        EXPECT_EQ(total(found, CollectiveKind::all_gather), padded);
        EXPECT_EQ(total(found, CollectiveKind::reduce_scatter), padded);
    }
}

TEST(MegatronFsdp, OptimGradsGathersOnceAndScattersEveryMicroBatch) {
    const auto found = collectives_of(make_plan(fsdp_scenario("gpt", {.data = 4, .micro_batches = 3}, 2)),
                                      GroupKind::shard_group);
    EXPECT_EQ(total(found, CollectiveKind::all_gather), padded);
    EXPECT_EQ(total(found, CollectiveKind::reduce_scatter), 3 * padded);
}

TEST(MegatronFsdp, ReplicasReduceTheSlicesOnceAStep) {
    Scenario scenario = fsdp_scenario("gpt", {.data = 8, .micro_batches = 3}, 3);
    scenario.training.shard_group = 4;
    const Plan plan = make_plan(scenario);
    EXPECT_EQ(total(collectives_of(plan, GroupKind::replica_group), CollectiveKind::all_reduce), padded / 4);
    EXPECT_EQ(of_category(plan, Category::gradients), 4 * padded / 4);
}

/// Highest number of live buffers of `role`, over the step.
std::uint64_t most_live(const Plan& plan, BufferRole role) {
    const StepProgram& program = plan.programs[0];
    std::uint64_t live = 0, most = 0;
    const auto run = [&](const Section& section) {
        for (const Operation& operation : section.operations) {
            const auto* made = std::get_if<Allocate>(&operation.body);
            const auto* freed = std::get_if<Free>(&operation.body);
            if (made != nullptr && program.buffers[made->buffer].role == role) most = std::max(most, ++live);
            if (freed != nullptr && program.buffers[freed->buffer].role == role) --live;
        }
    };
    run(program.init);
    for (const Section& section : program.step) run(section);
    return most;
}

std::uint64_t gathered_at_once(const std::string& options) {
    return most_live(
        make_plan(fsdp_scenario("gpt", {.data = 4, .micro_batches = 2, .megatron_json = options}, 3)),
        BufferRole::gathered_parameters);
}

TEST(MegatronFsdp, TheWindowSaysHowManyUnitsAreGathered) {
    // The window holds half a communication unit of gathered elements beside the layer that runs.
    EXPECT_EQ(gathered_at_once(R"({"suggested_communication_unit_size": 2})"), 2U);
    EXPECT_EQ(gathered_at_once(R"({"suggested_communication_unit_size": 100352})"), 2U);
    EXPECT_EQ(gathered_at_once(R"({"suggested_communication_unit_size": 200000})"), 3U);
    EXPECT_EQ(gathered_at_once(""), 8U);  // 500 million elements: all of this model's layers
}

TEST(MegatronFsdp, TheQueueOfReductionsHoldsACommunicationUnit) {
    const auto buckets = [](const std::string& options) {
        return most_live(make_plan(fsdp_scenario("gpt", {.data = 4, .megatron_json = options}, 3)),
                         BufferRole::gradient_bucket);
    };
    // Beside the bucket of what is of no unit: the layer that runs, and those queued (of more than one unit's
    // elements only when the next is reduced).
    EXPECT_EQ(buckets(R"({"suggested_communication_unit_size": 2})"), 3U);
    EXPECT_EQ(buckets(R"({"suggested_communication_unit_size": 60000})"), 4U);
    EXPECT_EQ(buckets(""), 9U);
}

TEST(MegatronFsdp, DoubleBuffersStayAndAreTwo) {
    const Plan plan =
        make_plan(fsdp_scenario("gpt", {.data = 4, .megatron_json = R"({"fsdp_double_buffer": true})"}, 3));
    EXPECT_EQ(of_category(plan, Category::gathered_parameters), 2 * (rest + 2 * layer));
    EXPECT_EQ(of_category(plan, Category::communication_buffers), 4 * 2 * layer);
    const Plan registered =
        make_plan(fsdp_scenario("gpt", {.data = 4, .megatron_json = R"({"nccl_ub": true})"}, 3));
    EXPECT_EQ(registered.rank_groups[0].steady.allocated, plan.rank_groups[0].steady.allocated);
}

TEST(MegatronFsdp, GradientsOfAnotherDtypeAreCastForTheStep) {
    Scenario scenario = fsdp_scenario("gpt", {.data = 4}, 3);
    scenario.training.gradient_dtype = scenario.training.reduce_dtype = DType::bf16;
    EXPECT_EQ(of_category(make_plan(scenario), Category::gradients), (2 + 4) * padded / 4);
}

TEST(MegatronFsdp, EachStageNeedsLessThanTheOneBefore) {
    std::uint64_t before = ~0ULL;
    for (std::uint32_t stage = 0; stage <= 3; ++stage) {
        const Plan plan = make_plan(fsdp_scenario("llama", {.data = 8}, stage));
        std::uint64_t states = 0;
        for (const Category category : {Category::parameters, Category::gradients, Category::master_weights,
                                        Category::optimizer_states})
            states += of_category(plan, category);
        EXPECT_LT(states, before);
        before = states;
    }
}

TEST(MegatronFsdp, EveryParameterStandsInOneBucket) {
    for (const char* family : {"gpt", "llama", "deepseek"}) {
        const Plan plan = make_plan(fsdp_scenario(family, {.pipeline = 2, .chunks = 2, .data = 2}, 3));
        for (const RankModel& part : plan.rank_models) {
            std::vector<int> seen(part.model.parameters.size(), 0);
            for (std::size_t u = part.model.parameters.size(); u < part.layout.units.size(); ++u)
                for (const PlacedParameter& placed : part.layout.units[u].parameters)
                    ++seen[placed.parameter];
            for (std::size_t p = 0; p < seen.size(); ++p)
                EXPECT_EQ(seen[p], part.model.parameters[p].shared_with ? 0 : 1) << family << ' ' << p;
        }
    }
}

std::vector<MegatronCase> cases() {
    std::vector<MegatronCase> cases{{}, {.data = 4, .micro_batches = 5}};
    for (const std::uint64_t chunks : {1ULL, 2ULL})
        for (const std::uint64_t micro_batches : {2ULL, 8ULL})
            cases.push_back(
                {.tensor = 2, .pipeline = 4, .chunks = chunks, .data = 2, .micro_batches = micro_batches});
    for (const Recompute recompute : {Recompute::selective, Recompute::full})
        cases.push_back(
            {.pipeline = 2, .data = 2, .micro_batches = 4, .recompute = recompute, .dropout = true});
    cases.push_back({.data = 2, .expert = 2, .micro_batches = 2});
    cases.push_back({.context = 2, .data = 2, .megatron_json = R"({"fsdp_double_buffer": true})"});
    cases.push_back(
        {.data = 4, .micro_batches = 4, .megatron_json = R"({"suggested_communication_unit_size": 150000})"});
    return cases;
}

TEST(MegatronFsdp, ProgramsAreSound) {
    const std::vector<MegatronCase> all = cases();
    for (const char* family : {"gpt", "llama", "deepseek"})
        for (std::uint32_t stage = 0; stage <= 3; ++stage)
            for (std::size_t i = 0; i < all.size(); ++i) {
                if (all[i].expert > 1 && std::string(family) != "deepseek") continue;  // has no experts
                const EngineOutput output = megatron_fsdp_engine(fsdp_scenario(family, all[i], stage));
                for (std::size_t p = 0; p < output.programs.size(); ++p)
                    EXPECT_EQ(hazards(output.programs[p]), std::vector<std::string>{})
                        << family << " ZeRO " << stage << " case " << i << " pipeline stage " << p;
            }
}

TEST(MegatronFsdp, StepsAreTimed) {
    const auto time = [](const MegatronCase& wanted, std::uint32_t stage) {
        Scenario scenario = fsdp_scenario("llama", wanted, stage);
        scenario.cluster.gpu.link_bytes_per_s = 450e9;
        return closed_form_step(make_plan(scenario)).step_time_s;
    };
    EXPECT_GT(time({.data = 8}, 1), time({.data = 1}, 1));
    // Every micro-batch gathers and scatters: three more cost more than with the optimizer sharded alone.
    const double sharded = time({.data = 8, .micro_batches = 4}, 3) - time({.data = 8}, 3),
                 whole = time({.data = 8, .micro_batches = 4}, 1) - time({.data = 8}, 1);
    EXPECT_GT(sharded, whole);
}

std::string refused(const Scenario& scenario) {
    try {
        make_plan(scenario);
    } catch (const Error& error) {
        return error.place().pointer;
    }
    return "accepted";
}

TEST(MegatronFsdp, RefusesWhatIsNotModelled) {
    Scenario scenario = fsdp_scenario("gpt", {.data = 2, .recompute = Recompute::full}, 3);
    scenario.training.recompute_every = 2;
    EXPECT_EQ(refused(scenario), "/training/recompute_every");
    EXPECT_EQ(refused(fsdp_scenario("gpt", {.engine_version = "megatron-lm 2021"}, 3)),
              "/training/engine_version");
    scenario = fsdp_scenario("deepseek", {.data = 4, .expert = 2}, 3);
    scenario.training.shard_group = 2;
    EXPECT_EQ(refused(scenario), "/training/shard_group");
    EXPECT_EQ(
        refused(fsdp_scenario("gpt", {.megatron_json = R"({"outer_dp_sharding_strategy": "optim"})"}, 3)),
        "/training/megatron/outer_dp_sharding_strategy");
    EXPECT_EQ(refused(megatron_scenario("gpt", {.megatron_json = R"({"fsdp_double_buffer": true})"})),
              "/training/megatron/fsdp_double_buffer");
}

}  // namespace
}  // namespace zeroplan
