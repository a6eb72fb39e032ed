#pragma once
#include <memory>

#include "zeroplan/gui/plot_view.hpp"
#include "zeroplan/gui/step_memory.hpp"

namespace zeroplan::gui {

/// Live bytes of one rank group over a steady step, stacked by category. Every pixel column shows its fullest
/// moment, so that a peak of a single operation is never lost. Keys: ← → next moment, P the peak.
class MemoryTimelineView : public PlotView {
    Q_OBJECT
public:
    explicit MemoryTimelineView(QWidget* parent = nullptr);

    void set_memory(std::shared_ptr<const Plan> plan, std::uint32_t rank_group, StepMemory memory);
    /// The part of the axis that is shown; the streams' view keeps both aligned over time.
    void set_window(double begin, double end);
    const StepMemory& memory() const { return memory_; }
    /// Bytes at the upper end of the axis.
    double axis_top() const;
    /// Where the label of the cursor, or of the peak, stands: above all data. Empty if it is out of the
    /// window.
    QRectF cursor_label() const;
    std::optional<Description> describe_at(QPointF position) const override;

protected:
    bool empty() const override { return !plan_ || memory_.moments.empty() || !(memory_.end > 0); }
    void draw(QPainter& painter) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    void draw_columns(QPainter& painter, double top);
    void draw_sections(QPainter& painter) const;
    void draw_cursor(QPainter& painter) const;
    const StepMoment& fullest_between(double begin, double end) const;
    std::size_t peak_moment() const;
    double label_height() const;
    const StepMoment& cursor_moment() const { return memory_.moments[cursor_.value_or(peak_moment())]; }
    QString cursor_text() const;
    double names_height() const;
    void move_cursor(std::size_t moment);
    double x_of(double at) const;
    double at_x(double x) const;

    std::shared_ptr<const Plan> plan_;
    std::uint32_t rank_group_ = 0;
    StepMemory memory_;
    Bytes allowed_;  ///< what the allocator may have: the capacity without the runtime
    double begin_ = 0, end_ = 1;
    std::optional<std::size_t> cursor_;
};

}  // namespace zeroplan::gui
