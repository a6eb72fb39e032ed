#pragma once
#include "zeroplan/gui/plot_view.hpp"
#include "zeroplan/gui/topology_drawing.hpp"

namespace zeroplan::gui {

/// The cluster of a plan: fabric, nodes, and the selected rank's node whole, with what its links have and,
/// after a simulation, how busy they are. A click selects a rank, or the first one of a node. Keys: ← → the
/// next rank, Page Up and Page Down the next node.
class TopologyView : public PlotView {
    Q_OBJECT
public:
    explicit TopologyView(QWidget* parent = nullptr);

    void set_topology(const Topology& topology);
    void select_rank(std::uint64_t rank);
    std::uint64_t selected_rank() const { return rank_; }
    const TopologyDrawing& drawing() const { return drawing_; }
    std::optional<Description> describe_at(QPointF position) const override;

Q_SIGNALS:
    void rank_selected(std::uint64_t rank);

protected:
    bool empty() const override { return !topology_; }
    void draw(QPainter& painter) override;
    void layout_changed() override;
    void changeEvent(QEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    class Painter;
    const DrawnBox* box_at(QPointF position) const;
    const LinkClass* class_at(QPointF position) const;
    Description describe_rank(std::uint64_t rank) const;
    Description describe_box(const DrawnBox& box) const;
    void choose(std::uint64_t rank);
    void say_what_is_drawn();

    std::optional<Topology> topology_;
    TopologyDrawing drawing_;
    std::uint64_t rank_ = 0;
};

}  // namespace zeroplan::gui
