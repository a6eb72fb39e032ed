#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/cost/pipeline_plan.hpp"
#include "core/cost/random_program.hpp"
#include "core/cost/tiny_plan.hpp"
#include "zeroplan/collective_cost.hpp"
#include "zeroplan/cost_model.hpp"
#include "zeroplan/step_timeline.hpp"
#include "zeroplan/timed_program.hpp"

namespace zeroplan {
namespace {

using test::all_gather;
using test::host;
using test::on;
using test::random_operations;
using test::reduce_scatter;
using test::work;
using test::work_buffers;

Plan plan_of(std::vector<Operation> operations, std::uint64_t repeat = 1) {
    return test::test_plan(test::test_cluster(2), {{"step", repeat, std::move(operations)}}, work_buffers);
}

NodeWaits after(std::size_t lane, std::uint32_t node) {
    NodeWaits waits = no_waits();
    waits[lane] = node;
    return waits;
}

WorkTime work_time(const Plan& plan, std::uint64_t elements) {
    return CostModel(plan.scenario.model, plan.scenario.training, plan.scenario.cluster, plan.layout,
                     plan.programs[0])
        .cost(work(elements))
        .time();
}
double work_s(const Plan& plan, std::uint64_t elements) {
    return work_time(plan, elements).seconds;
}
CollectiveCost cost_of(const Plan& plan, const Collective& c) {
    const ClusterSpec& cluster = plan.scenario.cluster;
    return collective_cost(c.kind, Bytes{2 * c.elements},
                           group_placement(c.group, plan.layout.shard_group, cluster), cluster);
}
double collective_s(const Plan& plan, const Collective& c) {
    return cost_of(plan, c).seconds();
}
GpuShares shares(const Plan& plan, const Collective& c) {
    return shares_of(cost_of(plan, c), collective_s(plan, c), gpu_capacity(plan.scenario.cluster));
}

TEST(ClosedFormTimes, AStreamRunsOneNodeAfterTheOther) {
    TimedProgram program;
    program.sections = {
        {1, {{.lane = 0, .seconds = 1}, {.lane = 0, .seconds = 2}, {.lane = 1, .seconds = 5}}, {}}};
    EXPECT_EQ(closed_form_times(program), (NodeTimes{{0, 1}, {1, 3}, {0, 5}}));
}

TEST(ClosedFormTimes, ANodeWaitsForOtherLanes) {
    TimedProgram program;
    program.sections = {
        {1, {{.lane = 1, .seconds = 4}, {.lane = 0, .seconds = 1, .after = after(1, 0)}}, {}}};
    EXPECT_EQ(closed_form_times(program), (NodeTimes{{0, 4}, {4, 5}}));
}

TEST(ClosedFormTimes, StreamsRunOnWhileAnotherSectionBegins) {
    // Repeated: lane 0 takes 1, lane 1 takes 3 and waits for nothing; the host never blocks.
    TimedProgram program;
    program.sections = {{2, {{.lane = 0, .seconds = 1}, {.lane = 1, .seconds = 3}}, {}}};
    EXPECT_EQ(closed_form_times(program), (NodeTimes{{0, 1}, {0, 3}, {1, 2}, {3, 6}}));
}

TEST(ClosedFormTimes, AHostThatWaitedHoldsBackTheNextIteration) {
    TimedProgram program;
    program.sections = {{2,
                         {{.lane = 0, .seconds = 1, .after = after(host_lane, host_at_start)},
                          {.lane = 1, .seconds = 3, .after = after(host_lane, host_at_start)},
                          {.lane = host_lane, .after = after(1, 1)}},
                         {}}};
    EXPECT_EQ(closed_form_times(program), (NodeTimes{{0, 1}, {0, 3}, {3, 3}, {3, 4}, {3, 6}, {6, 6}}));
}

TEST(ClosedFormTimes, AReceiveWaitsForItsSend) {
    TimedProgram first, second;
    first.sections = {{2, {{.lane = 0, .seconds = 3, .transfer = TransferSide::send, .channel = 7}}, {}}};
    second.sections = {
        {2, {{.lane = 0, .transfer = TransferSide::receive, .channel = 7}, {.lane = 0, .seconds = 1}}, {}}};
    const std::vector<NodeTimes> times = closed_form_times(std::vector{second, first});
    EXPECT_EQ(times[0], (NodeTimes{{3, 3}, {3, 4}, {6, 6}, {6, 7}}));
    first.sections[0].repeat = 1;
    EXPECT_THROW(closed_form_times(std::vector{second, first}), Error);
}

TEST(ClosedFormTimes, AReceiveWaitsForTheSlowestProgramOfTheStageBefore) {
    const auto sends_after = [](double seconds) {
        TimedProgram program;
        program.sections = {
            {2, {{.lane = 0, .seconds = seconds, .transfer = TransferSide::send, .channel = 7}}, {}}};
        return program;
    };
    TimedProgram receives;
    receives.sections = {
        {2, {{.lane = 0, .transfer = TransferSide::receive, .channel = 7}, {.lane = 0, .seconds = 1}}, {}}};
    const std::vector<NodeTimes> times =
        closed_form_times(std::vector{sends_after(3), sends_after(5), receives, receives});
    for (const std::size_t program : {2U, 3U})
        EXPECT_EQ(times[program], (NodeTimes{{5, 5}, {5, 6}, {10, 10}, {10, 11}}));
}

TEST(ClosedForm, APipelineOfEqualStagesTakesMicroBatchesAndBubble) {
    // (m + p - 1) (f + b): the textbook's 1F1B without message time.
    for (const std::uint32_t stages : {2U, 4U, 8U}) {
        for (const std::uint32_t micro_batches : {1U, 3U, 8U, 40U}) {
            const Plan plan =
                test::pipeline_plan(std::vector<std::uint64_t>(stages, 1), micro_batches, 1'000'000, 0);
            const double pass = work_s(plan, 1'000'000) + work_s(plan, 2'000'000);
            const StepTimeline step = closed_form_step(plan);
            EXPECT_NEAR(step.step_time_s, (micro_batches + stages - 1) * pass, 1e-12);
            EXPECT_NEAR(step.bubble_s, (stages - 1) * pass, 1e-12);
        }
    }
}

TEST(ClosedForm, TheSlowestStageSetsThePaceOfAPipeline) {
    const Plan plan = test::pipeline_plan({1, 4, 1}, 50, 1'000'000, 0);
    const double slow = work_s(plan, 4'000'000) + work_s(plan, 8'000'000),
                 fast = work_s(plan, 1'000'000) + work_s(plan, 2'000'000);
    // The last stage's first pass hides behind the slow stage's second forward.
    EXPECT_NEAR(closed_form_step(plan).step_time_s, 50 * slow + fast, 1e-9);
}

TEST(ClosedForm, MessagesAddToTheStep) {
    const double without = closed_form_step(test::pipeline_plan({1, 1}, 8, 1'000'000, 0)).step_time_s;
    const Plan plan = test::pipeline_plan({1, 1}, 8, 1'000'000, 25'000'000);
    // 50 MB over a NIC of 50 GB/s: a millisecond and NCCL's latency, exposed at least twice.
    EXPECT_GE(closed_form_step(plan).step_time_s, without + 2 * 1e-3);
}

TEST(TimeProgram, OperationsThatFollowEachOtherAreOneNode) {
    const Plan plan =
        plan_of({on(Stream::compute, work(1000)), on(Stream::compute, work(2000)),
                 on(Stream::reduce, reduce_scatter(1'000'000), {1}), on(Stream::compute, work(500))});
    const TimedProgram program = time_program(plan, 0);
    ASSERT_EQ(program.sections[0].nodes.size(), 3U);  // the second piece of work is waited for
    EXPECT_EQ(program.sections[0].items.size(), 4U);
    EXPECT_DOUBLE_EQ(program.sections[0].nodes[0].seconds, work_s(plan, 1000) + work_s(plan, 2000));
    EXPECT_DOUBLE_EQ(program.sections[0].items[1].begin_s, work_s(plan, 1000));
}

TEST(TimeProgram, EqualCollectivesAreCostedOnce) {
    const Plan plan =
        plan_of({on(Stream::gather, all_gather(1'000'000)), on(Stream::gather, all_gather(1'000'000)),
                 on(Stream::gather, all_gather(2'000'000))});
    EXPECT_EQ(time_program(plan, 0).collectives.size(), 2U);
}

TEST(TimeProgram, FreesThatWaitForNothingNewVanish) {
    const Plan plan =
        plan_of({host(Allocate{1}), on(Stream::gather, all_gather(1'000'000)),
                 on(Stream::compute, work(1000), {1}), host(Free{1}, {2}), host(Wait{}, {1, 2})});
    EXPECT_EQ(time_program(plan, 0).sections[0].nodes.size(), 3U);  // gather, work, the Free
}

TEST(ClosedFormTimes, StagesMeetInTheSumsOfATiedEmbedding) {
    // The first stage comes after 3 s, the last one after 1; each has a second sum and the last one work
    // then.
    const auto stage = [](double seconds) {
        TimedProgram program;
        program.collectives = {{.group = GroupKind::embedding_group}};
        program.sections = {{2,
                             {{.lane = 0, .seconds = seconds},
                              {.lane = 2, .collective = 0, .seconds = 4, .after = after(0, 0)},
                              {.lane = 0, .seconds = 1, .after = after(2, 1)}},
                             {}}};
        return program;
    };
    TimedProgram between;
    between.sections = {{1, {{.lane = 0, .seconds = 30}}, {}}};
    const std::vector<NodeTimes> times = closed_form_times(std::vector{stage(3), between, stage(1)});
    EXPECT_EQ(times[0], (NodeTimes{{0, 3}, {3, 7}, {7, 8}, {8, 11}, {11, 15}, {15, 16}}));
    EXPECT_EQ(times[2], (NodeTimes{{0, 1}, {3, 7}, {7, 8}, {8, 9}, {11, 15}, {15, 16}}));
    EXPECT_EQ(times[1], (NodeTimes{{0, 30}}));
    EXPECT_EQ(closed_form_times(stage(1))[1], (NodeTime{1, 5}));  // alone it meets nobody
    TimedProgram once = stage(1);
    once.sections[0].repeat = 1;
    EXPECT_THROW(closed_form_times(std::vector{stage(3), once}), Error);
}

TEST(ClosedForm, ComputeWaitsForItsGather) {
    const Plan plan =
        plan_of({on(Stream::gather, all_gather(64'000'000)), on(Stream::compute, work(1000), {0})});
    const double gather = collective_s(plan, all_gather(64'000'000)), compute = work_s(plan, 1000);
    const StepTimeline step = closed_form_step(plan);
    EXPECT_DOUBLE_EQ(step.step_time_s, gather + compute);
    EXPECT_NEAR(step.compute_s, compute, 1e-15);
    EXPECT_DOUBLE_EQ(step.communication_s, gather);
    EXPECT_DOUBLE_EQ(step.exposed_communication_s, gather);
    EXPECT_DOUBLE_EQ(step.bubble_s, 0);
    EXPECT_EQ(step.fidelity, "closed form");
    EXPECT_LT(step.low_s, step.step_time_s);
    EXPECT_GT(step.high_s, step.step_time_s);
}

TEST(ClosedForm, PrefetchHidesTheShorterOfGatherAndCompute) {
    // gather 0; gather 1 runs while 0 computes.
    const Plan plan =
        plan_of({on(Stream::gather, all_gather(64'000'000)), on(Stream::gather, all_gather(64'000'000)),
                 on(Stream::compute, work(10'000'000'000), {0}), on(Stream::compute, work(1000), {1})});
    const double gather = collective_s(plan, all_gather(64'000'000));
    const double first = work_s(plan, 10'000'000'000), second = work_s(plan, 1000);
    ASSERT_GT(first, gather);
    const StepTimeline step = closed_form_step(plan);
    // What the second gather slows down is behind by gather − gather / slow_down when it has ended.
    const double slower = slow_down(work_time(plan, 10'000'000'000), shares(plan, all_gather(64'000'000)));
    ASSERT_GT(slower, 1);
    EXPECT_DOUBLE_EQ(step.step_time_s, gather + first + second + gather - gather / slower);
    EXPECT_NEAR(step.slowed_s, gather - gather / slower, 1e-15);
    EXPECT_DOUBLE_EQ(step.communication_s, 2 * gather);
    EXPECT_NEAR(step.exposed_communication_s, gather, 1e-15);
}

TEST(ClosedForm, AFreeThatWaitsHoldsBackTheNextGather) {
    // gather 0, compute 0, the host frees 0 and only then issues gather 1.
    const Plan plan =
        plan_of({on(Stream::gather, all_gather(64'000'000)), on(Stream::compute, work(50'000'000), {0}),
                 host(Free{1}, {1}), on(Stream::gather, all_gather(64'000'000)),
                 on(Stream::compute, work(50'000'000), {3})});
    const double gather = collective_s(plan, all_gather(64'000'000)), compute = work_s(plan, 50'000'000);
    const StepTimeline step = closed_form_step(plan);
    EXPECT_DOUBLE_EQ(step.step_time_s, 2 * gather + 2 * compute);
    EXPECT_DOUBLE_EQ(step.operations[2].start_s, gather + compute);
}

TEST(ClosedForm, HostWorkIsABubble) {
    // 1000 bf16 numbers over PCIe, before anything else is issued.
    const Plan plan = plan_of({host(LoadBatch{1, no_buffer}), on(Stream::compute, work(1000))});
    const double load = CostModel(plan.scenario.model, plan.scenario.training, plan.scenario.cluster,
                                  plan.layout, plan.programs[0])
                            .cost(LoadBatch{1, no_buffer})
                            .seconds;
    const StepTimeline step = closed_form_step(plan);
    EXPECT_GT(load, 0);
    EXPECT_DOUBLE_EQ(step.step_time_s, load + work_s(plan, 1000));
    EXPECT_NEAR(step.bubble_s, load, 1e-15);
}

TEST(ClosedForm, LongRepetitionsContinueInAStraightLine) {
    const auto operations = [] {
        return std::vector<Operation>{on(Stream::gather, all_gather(64'000'000)),
                                      on(Stream::compute, work(50'000'000), {0}), host(Wait{}, {1})};
    };
    const StepTimeline once = closed_form_step(plan_of(operations()));
    const StepTimeline step = closed_form_step(plan_of(operations(), 1'000'000'000));
    EXPECT_NEAR(step.step_time_s / once.step_time_s, 1e9, 1);
    EXPECT_NEAR(step.compute_s / once.compute_s, 1e9, 1);
    EXPECT_NEAR(step.exposed_communication_s / once.exposed_communication_s, 1e9, 1);
    EXPECT_EQ(step.operations.size(), 2 * repeat_limit);
    EXPECT_EQ(step.operations.back().iteration, 999'999'999U);
    EXPECT_DOUBLE_EQ(step.operations.back().end_s, step.step_time_s);
}

TEST(ClosedForm, LongRepetitionsBesideCollectivesDoToo) {
    // A reduction slows down the next repetition's work, which waits for a gather that its end let start.
    const Plan plan =
        plan_of({on(Stream::gather, all_gather(64'000'000)), on(Stream::compute, work(900'000'000), {0}),
                 on(Stream::reduce, reduce_scatter(90'000'000), {1}), host(Wait{}, {1})},
                40);
    const TimedProgram program = time_program(plan, 0);
    double end = 0, slowed = 0;
    const NodeTimes all = closed_form_times(program);  // of all 40
    ASSERT_EQ(all.size(), 40 * program.sections[0].nodes.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        const TimedNode& node = program.sections[0].nodes[i % program.sections[0].nodes.size()];
        end = std::max(end, all[i].end_s);
        if (node.collective == no_collective) slowed += all[i].end_s - all[i].start_s - node.seconds;
    }
    const StepTimeline step = closed_form_step(plan);
    EXPECT_GT(slowed, 0);
    EXPECT_NEAR(step.step_time_s, end, 1e-12);
    EXPECT_NEAR(step.slowed_s, slowed, 1e-12);
}

TEST(Throughput, CountsForwardThreeTimes) {
    Plan plan = plan_of({on(Stream::compute, work(1000))});
    plan.scenario.training.gradient_accumulation_steps = 4;
    const Throughput result = throughput(plan, 0.5);
    // 4 micro-batches of 1000 tokens in 0.5 s; 2e9 · 3 flops each; peak 1e14.
    EXPECT_DOUBLE_EQ(result.tokens_per_s_per_gpu, 8000);
    EXPECT_DOUBLE_EQ(result.model_flop_per_s_per_gpu, 4 * 6e9 / 0.5);
    EXPECT_DOUBLE_EQ(result.mfu, 4 * 6e9 / 0.5 / 1e14);
}

TEST(Throughput, CountsWhatIsRecomputedInHfuAlone) {
    Compute forward, again;
    again.phase = ComputePhase::recompute;
    const Plan plan = plan_of({on(Stream::compute, forward), on(Stream::compute, again)});
    const Throughput result = throughput(plan, 0.5);
    EXPECT_DOUBLE_EQ(result.mfu, 6e9 / 0.5 / 1e14);
    EXPECT_DOUBLE_EQ(result.hfu, 8e9 / 0.5 / 1e14);  // four forward passes' worth instead of three
    EXPECT_DOUBLE_EQ(result.hardware_flop_per_s_per_gpu, 8e9 / 0.5);
}

// --- Random programs against the rules of step_program.hpp, taken word by word.

struct Spans {
    std::vector<std::pair<double, double>> operations;  ///< on streams, in issue order
    double end = 0;
};

/// Every operation starts when the host has issued it, its stream is free and what it waits for has ended;
/// Free and Wait block the host.
Spans execute_literally(const Plan& plan) {
    Spans spans;
    std::array<double, stream_count> stream_end{};
    double host_time = 0;
    for (const Section& section : plan.programs[0].step) {
        for (std::uint64_t i = 0; i < section.repeat; ++i) {
            std::vector<double> end(section.operations.size(), 0);
            for (OperationId id = 0; id < section.operations.size(); ++id) {
                const Operation& operation = section.operations[id];
                double start = host_time;
                for (const OperationId wait : operation.waits) start = std::max(start, end[wait]);
                const auto* step = std::get_if<OptimizerStep>(&operation.body);
                const auto* collective = std::get_if<Collective>(&operation.body);
                if (step == nullptr && collective == nullptr) {
                    end[id] = start;
                    if (!std::holds_alternative<Allocate>(operation.body)) host_time = start;
                    continue;
                }
                double& stream = stream_end[static_cast<std::size_t>(operation.stream)];
                start = std::max(start, stream);
                stream = end[id] = start + (step != nullptr ? work_s(plan, step->elements)
                                                            : collective_s(plan, *collective));
                spans.operations.emplace_back(start, end[id]);
                spans.end = std::max(spans.end, end[id]);
            }
        }
    }
    return spans;
}

TEST(ClosedForm, FollowsTheRulesLiterallyOnRandomPrograms) {
    for (std::uint32_t seed = 0; seed < 200; ++seed) {
        std::mt19937 random(seed);
        const std::vector<Section> sections{{"a", 1 + seed % 3, random_operations(random, Stream::reduce)},
                                            {"b", 1, random_operations(random, Stream::reduce)}};
        Plan plan = test::test_plan(test::test_cluster(2), sections, work_buffers);
        plan.scenario.cluster.calibration.constants = test::nothing_taken();
        const Spans expected = execute_literally(plan);
        const StepTimeline step = closed_form_step(plan);
        ASSERT_EQ(step.operations.size(), expected.operations.size());
        for (std::size_t i = 0; i < expected.operations.size(); ++i) {
            ASSERT_NEAR(step.operations[i].start_s, expected.operations[i].first, 1e-12)
                << "seed " << seed << " #" << i;
            ASSERT_NEAR(step.operations[i].end_s, expected.operations[i].second, 1e-12)
                << "seed " << seed << " #" << i;
        }
        ASSERT_NEAR(step.step_time_s, expected.end, 1e-12);
    }
}

// --- Work beside collectives, by another way than in the order of time: rounds over all nodes.

struct Span {
    double start = 0, end = 0;
    GpuShares takes;  ///< of the GPU, if it is a collective
};

/// How long work from `start` takes beside the collectives among `spans`, in small pieces between their
/// starts and ends.
double beside(const WorkTime& work, double start, const std::vector<Span>& spans) {
    std::vector<double> moments{start};
    for (const Span& span : spans)
        for (const double moment : {span.start, span.end})
            if (moment > start) moments.push_back(moment);
    std::sort(moments.begin(), moments.end());
    moments.push_back(1e9);
    double left = work.seconds;
    for (std::size_t i = 0; i + 1 < moments.size(); ++i) {
        GpuShares taken;
        for (const Span& span : spans)
            if (span.takes != GpuShares{} && span.start <= moments[i] && moments[i] < span.end)
                taken.add(span.takes);
        const double slower = slow_down(work, taken);
        if (left * slower <= moments[i + 1] - moments[i]) return moments[i] + left * slower - start;
        left -= (moments[i + 1] - moments[i]) / slower;
    }
    return 0;
}

/// One round: every node starts when its lane is free and what it waits for has ended. Collectives are where
/// they were `before`.
std::vector<Span> one_round(const TimedProgram& program, const std::vector<Span>& before) {
    std::vector<Span> spans;
    std::array<double, lane_count> lane_end{};
    for (const TimedSection& section : program.sections) {
        for (std::uint64_t i = 0; i < section.repeat; ++i) {
            const std::size_t first = spans.size();
            const double host_before = lane_end[host_lane];
            for (const TimedNode& node : section.nodes) {
                double start = lane_end[node.lane];
                for (const std::uint32_t wait : node.after)
                    if (wait != no_node)
                        start =
                            std::max(start, wait == host_at_start ? host_before : spans[first + wait].end);
                Span span{start, start + node.seconds, {}};
                if (node.collective != no_collective)
                    span.takes =
                        shares_of(program.collectives[node.collective].cost, node.seconds, program.gpu);
                else if (is_device_lane(node.lane))
                    span.end = start + beside(node.work(), start, before);
                lane_end[node.lane] = span.end;
                spans.push_back(span);
            }
        }
    }
    return spans;
}

/// Each round is right up to one more moment at which a collective starts or ends.
std::vector<Span> settle(const TimedProgram& program) {
    std::vector<Span> spans = one_round(program, {});
    for (std::size_t round = 0; round < 2 * spans.size(); ++round) spans = one_round(program, spans);
    return spans;
}

TEST(ClosedForm, SlowsWorkDownWhileCollectivesRun) {
    double slowed = 0;
    for (std::uint32_t seed = 0; seed < 200; ++seed) {
        std::mt19937 random(seed);
        const std::vector<Section> sections{{"a", 1 + seed % 3, random_operations(random, Stream::reduce)},
                                            {"b", 1, random_operations(random, Stream::reduce)}};
        const Plan plan = test::test_plan(test::test_cluster(2), sections, work_buffers);
        const TimedProgram program = time_program(plan, 0);
        const std::vector<Span> expected = settle(program);
        const NodeTimes times = closed_form_times(program);
        ASSERT_EQ(times.size(), expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i) {
            ASSERT_NEAR(times[i].start_s, expected[i].start, 1e-12) << "seed " << seed << " #" << i;
            ASSERT_NEAR(times[i].end_s, expected[i].end, 1e-12) << "seed " << seed << " #" << i;
        }
        slowed += closed_form_step(plan).slowed_s;
    }
    EXPECT_GT(slowed, 0);
}

}  // namespace
}  // namespace zeroplan
