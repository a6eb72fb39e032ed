#include "zeroplan/gui/memory_timeline_view.hpp"

#include <gtest/gtest.h>

#include <QTest>

#include "gui/sample_plan.hpp"

namespace zeroplan::gui {
namespace {

class MemoryTimelineViewTest : public testing::Test {
protected:
    MemoryTimelineViewTest() {
        view.resize(800, 250);
        view.set_memory(plan, 0, memory_by_operation(*plan, 0));
    }
    std::shared_ptr<const Plan> plan = std::make_shared<const Plan>(test::sample_plan(
        {{{{0, 7}}, 2048, 4096, 0, 0}}, 16384));  // 4096 B of workspace during one operation
    MemoryTimelineView view;
};

TEST_F(MemoryTimelineViewTest, HoveringNamesTheOperation) {
    const QRectF plot = view.plot_rect();
    const auto said =
        view.describe_at({plot.left() + plot.width() * 4.5 / view.memory().end, plot.center().y()});
    ASSERT_TRUE(said);
    EXPECT_TRUE(said->heading.startsWith("allocate kernels (workspace")) << said->heading.toStdString();
    EXPECT_FALSE(view.describe_at({2, 2}));
}

TEST_F(MemoryTimelineViewTest, DescribesThePeakWithoutAMouse) {
    EXPECT_TRUE(view.accessibleDescription().contains("allocated: 7,680 B"))
        << view.accessibleDescription().toStdString();
    QTest::keyClick(&view, Qt::Key_Home);
    EXPECT_TRUE(view.accessibleDescription().startsWith("between two steps"));
    QTest::keyClick(&view, Qt::Key_Right);
    EXPECT_TRUE(view.accessibleDescription().contains("operation: 2 of 11"));
    QTest::keyClick(&view, Qt::Key_P);
    EXPECT_TRUE(view.accessibleDescription().contains("temporaries: 4,096 B"));
}

TEST_F(MemoryTimelineViewTest, APeakNarrowerThanAPixelIsSeen) {
    Plan many = *plan;  // 100,000 operations on 700 pixels, one of them the peak
    auto& operations = many.programs[0].step[0].operations;
    const Operation filler = operations[2];
    operations.insert(operations.begin() + 7, 100'000, filler);
    view.set_memory(std::make_shared<const Plan>(many), 0, memory_by_operation(many, 0));
    view.grab();
    bool seen = false;
    for (int x = 0; x < view.width(); ++x)
        if (const auto said = view.describe_at(QPointF(x, view.plot_rect().center().y())))
            seen = seen || said->heading.startsWith("allocate kernels");
    EXPECT_TRUE(seen);
    EXPECT_LE(view.drawn_rectangles(), 800U * category_count);
}

// What is allocated shares the device with the runtime: 16,384 B of capacity, 4,096 B of it taken.
TEST_F(MemoryTimelineViewTest, TheLimitLeavesRoomForTheRuntime) {
    const Plan tight = test::uniform_plan(8);
    view.set_memory(std::make_shared<const Plan>(tight), 0, memory_by_operation(tight, 0));
    EXPECT_EQ(view.limit_names().first().toStdString(), "at most 12.00 KiB: capacity − runtime 4.00 KiB");
}

// Text would have to be guessed from pixels; what is on it is not text where the data has its colours.
TEST_F(MemoryTimelineViewTest, ThePeaksLabelCoversNoData) {
    view.set_window(0, view.memory().end);
    const QRectF label = view.cursor_label();
    ASSERT_FALSE(label.isEmpty());
    EXPECT_GE(label.top(), view.plot_rect().top());
    const double top = view.axis_top();
    for (const StepMoment& moment : view.memory().moments)
        EXPECT_LE(label.bottom(), view.plot_rect().bottom() - view.plot_rect().height() * moment.total / top);
}

TEST_F(MemoryTimelineViewTest, AWindowNarrowsWhatIsShown) {
    view.set_window(0, 2);
    const auto said = view.describe_at({view.plot_rect().right() - 2, view.plot_rect().center().y()});
    ASSERT_TRUE(said);
    EXPECT_EQ(said->rows[0].value.toStdString(), "2 of 11, micro-batch × 2");
}

}  // namespace
}  // namespace zeroplan::gui
