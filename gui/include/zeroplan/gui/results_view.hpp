#pragma once
#include <QPlainTextEdit>
#include <QSplitter>
#include <QTabWidget>
#include <QWidget>

#include "zeroplan/gui/ingredients_table.hpp"
#include "zeroplan/gui/memory_timeline_view.hpp"
#include "zeroplan/gui/planner.hpp"
#include "zeroplan/gui/rank_memory_view.hpp"
#include "zeroplan/gui/simulation.hpp"
#include "zeroplan/gui/simulation_bar.hpp"
#include "zeroplan/gui/stream_lanes_view.hpp"
#include "zeroplan/gui/topology_view.hpp"
#include "zeroplan/gui/verdict_panel.hpp"

namespace zeroplan::gui {

/// Pages of the results, in the order of their tabs.
enum class ResultsPage : std::uint8_t { memory, cluster, what_if };

/// The right side of the window: verdict, then on pages memory by rank with its ingredients, memory over the
/// step and streams; the cluster; what a what-if comes to.
/// What is selected in one part is shown by the others; a pinned baseline stands beside the current plan on
/// one scale.
class ResultsView : public QWidget {
    Q_OBJECT
public:
    explicit ResultsView(QWidget* parent = nullptr);

    void show_planned(std::shared_ptr<const Planned> planned);
    /// Words in place of the verdict; the last plan stays visible, faded.
    void show_error(const Error& error);
    /// The streams as simulated, if the simulation is of the plan that is shown.
    void show_simulated(const Simulated& simulated);
    void pin_baseline();
    void toggle_baseline() { has_baseline() ? clear_baseline() : pin_baseline(); }
    void clear_baseline();
    bool has_baseline() const { return baseline_ != nullptr; }
    void set_axis(StepAxis axis);
    StepAxis axis() const { return axis_; }
    void set_page(ResultsPage page) { tabs_->setCurrentIndex(static_cast<int>(page)); }
    ResultsPage page() const { return static_cast<ResultsPage>(tabs_->currentIndex()); }

    const Planned* planned() const { return planned_.get(); }
    const StepTimeline* simulated_timeline() const;
    VerdictPanel& verdict() { return *verdict_; }
    RankMemoryView& ranks() { return *ranks_; }
    RankMemoryView& baseline_ranks() { return *baseline_ranks_; }
    IngredientsTable& table() { return *table_; }
    MemoryTimelineView& timeline() { return *timeline_; }
    StreamLanesView& lanes() { return *lanes_; }
    TopologyView& topology() { return *topology_; }
    QString what_if() const { return what_if_->toPlainText(); }
    SimulationBar& simulation_bar() { return *bar_; }

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void show_group();
    void show_ranks();
    void show_table();
    void show_memory();
    void show_lanes();
    void show_time_in_words();
    void show_topology();
    void show_what_if();
    void show_difference();
    std::uint32_t group() const;

    std::shared_ptr<const Planned> planned_, baseline_;
    std::optional<Simulated> simulated_, baseline_simulated_;
    GroupView view_;
    StepAxis axis_ = StepAxis::time;
    bool user_selected_ = false;  ///< else the fullest rank is

    VerdictPanel* verdict_;
    QSplitter* top_;
    RankMemoryView *baseline_ranks_, *ranks_;
    IngredientsTable* table_;
    MemoryTimelineView* timeline_;
    SimulationBar* bar_;
    StreamLanesView* lanes_;
    TopologyView* topology_;
    QPlainTextEdit* what_if_;
    QTabWidget* tabs_;
};

}  // namespace zeroplan::gui
