#pragma once
#include <memory>

#include "zeroplan/gui/memory_stack.hpp"
#include "zeroplan/gui/plot_view.hpp"
#include "zeroplan/gui/rank_columns.hpp"

namespace zeroplan::gui {

/// Device memory of every rank at its peak: categories, reserved slack and runtime stacked, the capacity as a
/// line, what is above it hatched. Keys: ← → next bar, Page Up/Down next node, Home/End, P the fullest rank,
/// Z scale to the data instead of the capacity.
class RankMemoryView : public PlotView {
    Q_OBJECT
public:
    explicit RankMemoryView(QWidget* parent = nullptr);

    void set_plan(std::shared_ptr<const Plan> plan);
    /// Top of the byte axis; 0: what the plan needs. Two views side by side share one.
    void set_top(double bytes);
    /// Top of the axis that the plan by itself would get, in bytes.
    double needed_top() const;

    std::uint64_t selected_rank() const { return selected_; }
    void select_rank(std::uint64_t rank);
    std::optional<std::uint64_t> rank_at(QPointF position) const;
    std::optional<Description> describe_at(QPointF position) const override;
    ColumnMode mode() const { return columns_.mode; }

Q_SIGNALS:
    void rank_selected(std::uint64_t rank);

protected:
    bool empty() const override { return !plan_ || plan_->rank_groups.empty(); }
    void draw(QPainter& painter) override;
    void layout_changed() override;
    void mousePressEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    void draw_column(QPainter& painter, const RankColumn& column, double top);
    void draw_overflow(QPainter& painter, const RankColumn& column, double total, double top);
    void draw_segment_labels(QPainter& painter, const RankColumn& column, double top) const;
    void draw_selection(QPainter& painter, double top) const;
    void draw_ranks(QPainter& painter) const;
    std::size_t column_of(std::uint64_t rank) const;
    void step_column(int by);

    std::shared_ptr<const Plan> plan_;
    RankColumns columns_;
    double top_ = 0;
    std::uint64_t selected_ = 0;
    bool scale_to_data_ = false;
};

}  // namespace zeroplan::gui
