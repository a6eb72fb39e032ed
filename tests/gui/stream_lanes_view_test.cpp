#include "zeroplan/gui/stream_lanes_view.hpp"

#include <gtest/gtest.h>

#include <QSignalSpy>
#include <QTest>
#include <QWheelEvent>

#include "gui/sample_plan.hpp"

namespace zeroplan::gui {
namespace {

class StreamLanesViewTest : public testing::Test {
protected:
    StreamLanesViewTest() {
        view.resize(900, 200);
        view.set_lanes(StreamLanes(plan, 0, test::sample_timeline(*plan)));
    }
    QPointF at(double seconds, int lane) const {
        const QRectF plot = view.plot_rect();
        return {plot.left() + seconds / 16e-3 * plot.width(), plot.top() + plot.height() * (lane + 0.5) / 3};
    }
    std::shared_ptr<const Plan> plan = std::make_shared<const Plan>(test::uniform_plan(8));
    StreamLanesView view;
};

TEST_F(StreamLanesViewTest, HoveringNamesOperationTimesAndBytes) {
    const auto gather = view.describe_at(at(0.5e-3, 1));
    ASSERT_TRUE(gather);
    EXPECT_EQ(
        plain_text(*gather).toStdString(),
        "all_gather layers.0\nstream: gather\nstarts: 0.000 s\nends: 1 ms\ntakes: 1 ms\nbuffer: 1,024 B\n"
        "dtype: bf16\nmicro-batch: 1 of 2");
    const auto forward = view.describe_at(at(1.5e-3, 0));
    ASSERT_TRUE(forward);
    EXPECT_EQ(forward->heading.toStdString(), "forward layers.0 mlp.up_proj");
    EXPECT_FALSE(view.describe_at(at(0.5e-3, 2)));
}

TEST_F(StreamLanesViewTest, WheelAndKeysZoomAndPan) {
    QSignalSpy moved(&view, &StreamLanesView::window_changed);
    QWheelEvent wheel(at(8e-3, 0), view.mapToGlobal(at(8e-3, 0)), {}, {0, 480}, {}, {}, Qt::NoScrollPhase,
                      false);
    QCoreApplication::sendEvent(&view, &wheel);
    EXPECT_LT(view.end_s() - view.begin_s(), 12e-3);
    EXPECT_EQ(moved.count(), 1);
    const double begin = view.begin_s();
    QTest::keyClick(&view, Qt::Key_Left);
    EXPECT_LT(view.begin_s(), begin);
    QTest::keyClick(&view, Qt::Key_F);
    EXPECT_DOUBLE_EQ(view.begin_s(), 0);
    EXPECT_DOUBLE_EQ(view.end_s(), 16e-3);
}

TEST_F(StreamLanesViewTest, TheWindowStaysInsideTheStep) {
    view.set_window(-5, 100);
    EXPECT_DOUBLE_EQ(view.begin_s(), 0);
    EXPECT_DOUBLE_EQ(view.end_s(), 16e-3);
    view.set_window(15e-3, 20e-3);
    EXPECT_DOUBLE_EQ(view.end_s(), 16e-3);
    for (int i = 0; i < 200; ++i) view.zoom(0.5, 450);
    EXPECT_GT(view.end_s(), view.begin_s());
}

TEST_F(StreamLanesViewTest, DraggingPans) {
    view.set_window(4e-3, 8e-3);
    QTest::mousePress(&view, Qt::LeftButton, {}, {500, 60});
    QMouseEvent move(QEvent::MouseMove, QPointF(400, 60), view.mapToGlobal(QPointF(400, 60)), Qt::NoButton,
                     Qt::LeftButton, {});
    QCoreApplication::sendEvent(&view, &move);
    QTest::mouseRelease(&view, Qt::LeftButton, {}, {400, 60});
    EXPECT_GT(view.begin_s(), 4e-3);
}

TEST_F(StreamLanesViewTest, GroupsJoinTheOperatorsOfABlock) {
    StepTimeline timeline = test::sample_timeline(*plan);
    for (std::uint64_t i = 2; i <= 100'000; ++i)  // as if a step had 100,000 micro-batches
        for (OperationId o : {2U, 4U, 5U, 7U}) {
            const double start = timeline.step_time_s;
            timeline.operations.push_back({0, i, o, Stream::compute, start, start + 1e-3});
            timeline.step_time_s += 1e-3;
        }
    view.set_lanes(StreamLanes(plan, 0, timeline));
    view.grab();
    EXPECT_GT(view.drawn_rectangles(), 100U);
    EXPECT_LE(view.drawn_rectangles(), 3U * 900);  // 400,000 operations
}

TEST_F(StreamLanesViewTest, ANewStepOfTheSameLengthKeepsTheWindow) {
    view.set_window(4e-3, 8e-3);
    view.set_lanes(StreamLanes(plan, 0, test::sample_timeline(*plan)));
    EXPECT_DOUBLE_EQ(view.begin_s(), 4e-3);
    StepTimeline longer = test::sample_timeline(*plan);
    longer.step_time_s *= 2;
    view.set_lanes(StreamLanes(plan, 0, longer));
    EXPECT_DOUBLE_EQ(view.begin_s(), 0);
}

}  // namespace
}  // namespace zeroplan::gui
