#include "zeroplan/gui/verdict_panel.hpp"

#include <gtest/gtest.h>

#include <QTest>
#include <QVBoxLayout>

#include "gui/sample_plan.hpp"

namespace zeroplan::gui {
namespace {

TEST(VerdictSentence, SaysWhetherItFitsInBothUnits) {
    Plan plan = test::uniform_plan(8);
    plan.memory.overall_peak_device = Bytes{60ULL << 30};
    plan.memory.capacity = Bytes{80ULL << 30};
    EXPECT_EQ(verdict_sentence(plan).toStdString(),
              "Fits: 60.00 GiB (64.42 GB) of 80.00 GiB (85.90 GB), 20.00 GiB free");

    plan.memory.verdict = Verdict::does_not_fit;
    plan.memory.overall_peak_device = Bytes{90ULL << 30};
    plan.memory.peak_rank = 7;
    EXPECT_EQ(verdict_sentence(plan).toStdString(), "Does not fit: rank 7 is over by 10.00 GiB (10.74 GB)");

    Plan host = plan;
    host.memory.overall_peak_device = Bytes{60ULL << 30};
    host.memory.host_per_node = Bytes{3ULL << 40};
    host.memory.host_capacity = Bytes{2ULL << 40};
    EXPECT_EQ(verdict_sentence(host).toStdString(), "Does not fit: host memory of a node, " +
                                                        format_bytes(Bytes{3ULL << 40}) + " of " +
                                                        format_bytes(Bytes{2ULL << 40}));

    plan.memory.verdict = Verdict::marginal;
    plan.memory.low = Bytes{79ULL << 30};
    plan.memory.high = Bytes{81ULL << 30};
    EXPECT_EQ(verdict_sentence(plan).toStdString(),
              "Marginal: 79.00 GiB to 81.00 GiB against 80.00 GiB (85.90 GB)");
}

TEST(PeakSentence, NamesPhaseRankAndOperation) {
    Plan plan = test::uniform_plan(8);
    plan.memory.overall_peak_device = plan.memory.low = plan.memory.high = Bytes{1ULL << 30};
    EXPECT_EQ(peak_sentence(plan).toStdString(),
              "Device peak 1.00 GiB (1.07 GB) on rank 0 in steady step at “forward layers.1 mlp.up_proj”.");
}

TEST(TimeSentence, SaysStepThroughputAndWhatIsExposed) {
    StepTimeline step;
    step.step_time_s = 2;
    step.exposed_communication_s = 0.5;
    step.bubble_s = 0.01;
    step.fidelity = "coupled flows";
    EXPECT_EQ(time_sentence(step, {8192.4, 4e14, 0.41}, true).toStdString(),
              "Step 2.000 s (coupled flows): 8,192 tokens/s per GPU, MFU 41 %, exposed communication 25 %, "
              "idle 0.5 %.");
    EXPECT_TRUE(time_sentence(step, {8192.4, 4e14, 0.41}, true, WaitOf::mean_over_ranks)
                    .endsWith("idle 0.5 % (mean over all ranks)."));
    EXPECT_TRUE(time_sentence(step, {10, 0, 0}, false).contains("10 samples/s per GPU, exposed"));
}

TEST(DifferenceSentence, ComparesPeaksAndSteps) {
    Plan before = test::uniform_plan(8), now = before;
    before.scenario.training.zero_stage = 3;
    before.memory.overall_peak_device = Bytes{40ULL << 30};
    now.memory.overall_peak_device = Bytes{50ULL << 30};
    StepTimeline slow, fast;
    slow.step_time_s = 2;
    fast.step_time_s = 1.5;
    EXPECT_EQ(difference_sentence(now, before, &fast, &slow).toStdString(),
              "Against the baseline (sample, ZeRO 3, 8 GPUs): device peak +10.00 GiB (+25 %), step −500 ms "
              "(−25 %).");
    EXPECT_EQ(difference_sentence(before, now, nullptr, &slow).toStdString(),
              "Against the baseline (sample, ZeRO 0, 8 GPUs): device peak −10.00 GiB (−20 %).");
    EXPECT_TRUE(difference_sentence(now, now, &slow, &slow).contains("device peak the same, step +"));
}

TEST(RemediesSentence, NamesEveryChangeWithItsPrice) {
    EXPECT_EQ(remedies_sentence({}).toStdString(), "");
    Remedy recompute{"--recompute full",
                     "activations are computed twice",
                     Bytes{60ULL << 30},
                     Bytes{80ULL << 30},
                     Verdict::fits,
                     1.3,
                     false};
    Remedy nodes{
        "--nodes 4", "32 GPUs, not 16", Bytes{79ULL << 30}, Bytes{80ULL << 30}, Verdict::marginal, {}, true};
    EXPECT_EQ(remedies_sentence({recompute, nodes}).toStdString(),
              "One change makes it fit: --recompute full (60.00 GiB; activations are computed twice), or "
              "--nodes 4 (79.00 GiB; may fit; 32 GPUs, not 16).");
    EXPECT_TRUE(remedies_sentence({nodes}).startsWith("One change may make it fit: --nodes 4 "));
    recompute.verdict = Verdict::does_not_fit;
    EXPECT_TRUE(remedies_sentence({recompute}).startsWith("No single change makes it fit; the closest is "));
}

TEST(Provenance, NamesRulesAndConstants) {
    Plan plan = test::uniform_plan(8);
    plan.constants = {{"cuda_context_bytes", 5e8, "B", "measured on an H100", "calibrated constant"}};
    EXPECT_EQ(provenance(plan).toStdString(),
              "Sizes by the rules of: sample\n"
              "cuda_context_bytes = 5e+08 B: calibrated constant, measured on an H100");
}

TEST(VerdictPanel, ShowsAnErrorWithItsWayOut) {
    VerdictPanel panel;
    panel.show_error(
        Error(ErrorCode::not_supported, "engine megatron is not modelled", "use native", {"", "Engine"}));
    EXPECT_TRUE(panel.shows_error());
    EXPECT_EQ(panel.headline().toStdString(), "Not modelled by this version");
    EXPECT_EQ(panel.details().toStdString(), "Engine: Engine megatron is not modelled. Use native.");
}

/// The panel as the window has it: above what takes the rest of the height.
class VerdictPanelHeight : public testing::Test {
protected:
    VerdictPanelHeight() : panel_(new VerdictPanel) {
        auto* column = new QVBoxLayout(&window_);
        column->addWidget(panel_);
        column->addWidget(new QWidget, 1);
        Plan plan = test::uniform_plan(8);
        plan.warnings = {{"closed_form_without_fabric",
                          "the closed form of the step knows no fabric: what its links hold back is in the "
                          "simulated step alone"}};
        planned_.plan = std::make_shared<const Plan>(plan);
        planned_.no_time = Error(ErrorCode::not_supported, "not timed");
    }
    void show(int width) {
        window_.resize(width, 600);
        window_.show();
        panel_->show_plan(planned_);
        QTest::qWait(1);
    }
    /// Of the labels that can be seen: how many pixels the worst off lacks.
    int clipped() const {
        int worst = 0;
        for (const QLabel* label : panel_->findChildren<QLabel*>()) {
            if (!label->isVisible()) continue;
            const int needed =
                label->wordWrap() ? label->heightForWidth(label->width()) : label->sizeHint().height();
            worst = std::max(worst, needed - label->height());
        }
        return worst;
    }

    QWidget window_;
    VerdictPanel* panel_;
    Planned planned_;
};

TEST_F(VerdictPanelHeight, GrowsWithTheSentenceOfTheStep) {
    const QString sentence =
        "Step 1.225 s (coupled flows): 6,686 tokens/s per GPU, MFU 39 %, exposed communication 20 %, idle "
        "1.3 % (mean over all ranks). Without the what-ifs 977 ms.";
    // The window is drawn right after a sentence has changed: no event is let through in between.
    for (int width = 600; width < 1700; width += 7) {
        show(width);
        panel_->show_time("Step 1.218 s.");
        EXPECT_LE(clipped(), 0) << width;
        const int before = panel_->height();
        panel_->show_time(sentence);
        EXPECT_LE(clipped(), 0) << width;
        panel_->show_time((sentence + ' ').repeated(4));
        EXPECT_LE(clipped(), 0) << width;
        EXPECT_GT(panel_->height(), before) << width;
        panel_->show_time("Step 1.218 s.");
        EXPECT_EQ(panel_->height(), before) << width;
    }
}

}  // namespace
}  // namespace zeroplan::gui
