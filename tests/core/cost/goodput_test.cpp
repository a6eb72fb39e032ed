#include "zeroplan/goodput.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "zeroplan/io.hpp"

namespace zeroplan {
namespace {

Plan plan_of(const std::string& training, std::uint64_t nodes) {
    return make_plan(resolve_scenario({.text = R"({"model": {"preset": "gpt2"}, "training": )" + training +
                                               R"(, "cluster": {"topology": "dgx-h100", "nodes": )" +
                                               std::to_string(nodes) + "}}"}));
}

TEST(Goodput, FollowsTheRenewalFormula) {
    // M = 1000, τ + δ = 100, R = 0: a segment takes 1000 (e^0.1 − 1) = 105.170918 s for 90 s of work.
    EXPECT_NEAR(expected_goodput({1000, 10, 0}, 90), 90 / 105.1709180756, 1e-10);
    // A restart of 200 s costs e^0.2 = 1.2214027582 of the time.
    EXPECT_NEAR(expected_goodput({1000, 10, 200}, 90), 90 / 105.1709180756 / 1.2214027582, 1e-10);
    // A job that never fails loses the checkpoints alone; one that fails at once keeps nothing.
    EXPECT_NEAR(expected_goodput({1e15, 10, 200}, 90), 0.9, 1e-9);
    EXPECT_EQ(expected_goodput({1e-3, 10, 200}, 90), 0);
    EXPECT_EQ(expected_goodput({1000, 10, 0}, 0), 0);
}

TEST(Goodput, FollowsTheRenewalFormulaWhenPlayedOut) {
    const CheckpointedRun run{500, 20, 60};
    const double interval = 120;
    std::mt19937_64 random(7);
    std::exponential_distribution<double> lifetime(1 / run.mtbf_s);
    double clock = 0;
    const int segments = 200'000;
    for (int kept = 0; kept < segments;) {
        double left = lifetime(random);
        for (; kept < segments && left >= interval + run.checkpoint_s; ++kept) {
            left -= interval + run.checkpoint_s;
            clock += interval + run.checkpoint_s;
        }
        if (kept == segments) break;
        clock += left;  // lost
        for (double until = lifetime(random); until < run.restart_s; until = lifetime(random)) clock += until;
        clock += run.restart_s;
    }
    EXPECT_NEAR(segments * interval / clock, expected_goodput(run, interval), 0.004);
}

TEST(CheckpointInterval, OfYoungAndDalyByHand) {
    const CheckpointedRun run{86400, 60, 300};
    EXPECT_NEAR(young_interval_s(run), std::sqrt(2 * 60.0 * 86400), 1e-9);  // 3219.94 s
    // √(60 / 172800) = 0.0186339: 3219.94 · (1 + 0.00621130 + 0.0000385802) − 60 = 3180.06
    EXPECT_NEAR(daly_interval_s(run), 3180.06, 0.01);
    EXPECT_EQ(daly_interval_s({10, 20, 0}), 10);
}

TEST(CheckpointInterval, TheBestIsTheRenewalFormulasMaximum) {
    for (const double checkpoint : {1e-3, 1.0, 60.0, 3600.0, 1e6}) {
        const CheckpointedRun run{86400, checkpoint, 300};
        const double best = best_interval_s(run), top = expected_goodput(run, best);
        for (const double off : {0.5, 0.9, 1.1, 2.0})
            EXPECT_LT(expected_goodput(run, best * off), top) << off;
        EXPECT_GE(top, expected_goodput(run, young_interval_s(run)));
        EXPECT_GE(top, expected_goodput(run, daly_interval_s(run)));
    }
    // Daly's series is the expansion of the exact solution.
    EXPECT_NEAR(best_interval_s({86400, 60, 0}) / daly_interval_s({86400, 60, 0}), 1, 1e-5);
}

TEST(CheckpointBytes, HoldEveryElementOnce) {
    // 124,439,808 parameters: bf16, fp32 master, two fp32 states of AdamW.
    const double parameters = 124'439'808;
    for (const char* stage : {"0", "3"})
        EXPECT_EQ(checkpoint_bytes(plan_of(std::string(R"({"zero_stage": )") + stage + "}", 2).scenario),
                  14 * parameters);
    EXPECT_EQ(checkpoint_bytes(plan_of(R"({"engine": "fsdp2"})", 1).scenario), 12 * parameters);
    EXPECT_EQ(checkpoint_bytes(plan_of(R"({"optimizer": "sgd", "compute_dtype": "fp32"})", 1).scenario),
              4 * parameters);
}

TEST(Goodput, AddsTheFailuresOfGpusAndNodes) {
    Failures failures;
    failures.gpu_mtbf_s = 16e6;  // 16 GPUs: one failure in 1e6 s
    failures.node_mtbf_s = 6e6;  // 2 nodes: one in 3e6 s
    failures.checkpoint_bytes_per_s = 14 * 124'439'808.0 / 20;
    failures.restart_s = 100;
    const Plan plan = plan_of(R"({"zero_stage": 3})", 2);
    const Goodput best = goodput(plan, failures);
    EXPECT_NEAR(best.mtbf_s, 0.75e6, 1e-6);
    EXPECT_NEAR(best.checkpoint_s, 20, 1e-9);
    EXPECT_FALSE(best.interval_is_given);
    EXPECT_EQ(best.interval_s, best.best_interval_s);
    EXPECT_EQ(best.goodput, best.best_goodput);
    failures.checkpoint_interval_s = 600;
    const Goodput asked = goodput(plan, failures);
    EXPECT_EQ(asked.interval_s, 600);
    EXPECT_LT(asked.goodput, best.goodput);
    EXPECT_EQ(asked.goodput, expected_goodput({best.mtbf_s, best.checkpoint_s, 100}, 600));
    failures.checkpoint_bytes = 0;
    EXPECT_EQ(goodput(plan, failures).checkpoint_s, 0);
}

}  // namespace
}  // namespace zeroplan
