#include "zeroplan/gui/results_view.hpp"

#include <QVBoxLayout>
#include <algorithm>

#include "zeroplan/gui/what_if_words.hpp"

namespace zeroplan::gui {

namespace {

QString group_name(const Plan& plan, std::uint32_t group) {
    const auto& ranks = plan.rank_groups.at(group).ranks;
    if (plan.rank_groups.size() == 1)
        return plan.scenario.world_size() == 1 ? QString() : QObject::tr("every rank");
    return QObject::tr("ranks %1").arg(text(to_string(ranks)));
}

const StepTimeline* slowest_step(const std::optional<Simulated>& simulated) {
    return simulated ? slowest_step(*simulated) : nullptr;
}

const StepTimeline* closed_form(const Planned& planned) {
    return planned.slowest ? &*planned.slowest : nullptr;
}

// A narrower one leaves the ranks too little beside the table's figures.
constexpr int width_for_every_byte = 800;

QSplitter* splitter(Qt::Orientation orientation, std::initializer_list<QWidget*> parts) {
    auto* split = new QSplitter(orientation);
    split->setChildrenCollapsible(false);
    split->setHandleWidth(6);
    for (QWidget* part : parts) split->addWidget(part);
    return split;
}

QPlainTextEdit* report_text() {
    auto* view = new QPlainTextEdit;
    view->setReadOnly(true);
    view->setTabChangesFocus(true);
    view->setFrameShape(QFrame::NoFrame);
    QFont mono("monospace");
    mono.setStyleHint(QFont::Monospace);
    view->setFont(mono);
    return view;
}

}  // namespace

ResultsView::ResultsView(QWidget* parent)
    : QWidget(parent),
      verdict_(new VerdictPanel),
      baseline_ranks_(new RankMemoryView),
      ranks_(new RankMemoryView),
      table_(new IngredientsTable),
      timeline_(new MemoryTimelineView),
      bar_(new SimulationBar),
      lanes_(new StreamLanesView),
      topology_(new TopologyView),
      what_if_(report_text()),
      tabs_(new QTabWidget) {
    baseline_ranks_->hide();
    top_ = splitter(Qt::Horizontal, {baseline_ranks_, ranks_, table_});
    for (int i = 0; i < 2; ++i) top_->setStretchFactor(i, 3);
    top_->setStretchFactor(2, 1);
    top_->setSizes({300, 460, 100});

    auto* streams = new QWidget;
    auto* streams_column = new QVBoxLayout(streams);
    streams_column->setContentsMargins(0, 0, 0, 0);
    streams_column->setSpacing(4);
    streams_column->addWidget(bar_);
    streams_column->addWidget(lanes_, 1);

    auto* views = splitter(Qt::Vertical, {top_, timeline_, streams});
    views->setStretchFactor(0, 5);
    views->setStretchFactor(1, 4);
    views->setStretchFactor(2, 3);
    views->setSizes({300, 220, 200});

    what_if_->setAccessibleName(tr("What the what-if comes to"));
    tabs_->setDocumentMode(true);
    tabs_->addTab(views, tr("Memory and time"));
    tabs_->addTab(topology_, tr("Cluster"));
    tabs_->addTab(what_if_, tr("What if"));

    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(6);
    column->addWidget(verdict_);
    column->addWidget(tabs_, 1);

    connect(verdict_->pin_button(), &QToolButton::clicked, this, &ResultsView::toggle_baseline);
    connect(lanes_, &StreamLanesView::window_changed, this, [this](double begin, double end) {
        if (timeline_->memory().axis == StepAxis::time) timeline_->set_window(begin, end);
    });
    connect(ranks_, &RankMemoryView::rank_selected, this, [this](std::uint64_t rank) {
        user_selected_ = true;
        topology_->select_rank(rank);
        show_group();
    });
    connect(topology_, &TopologyView::rank_selected, ranks_, &RankMemoryView::select_rank);
}

std::uint32_t ResultsView::group() const {
    return group_of(*planned_->plan,
                    user_selected_ ? ranks_->selected_rank() : planned_->plan->memory.peak_rank);
}

const StepTimeline* ResultsView::simulated_timeline() const {
    return simulated_ && group() < simulated_->rank_groups.size() ? &simulated_->rank_groups[group()]
                                                                  : nullptr;
}

void ResultsView::show_planned(std::shared_ptr<const Planned> planned) {
    planned_ = std::move(planned);
    simulated_.reset();
    for (PlotView* view : std::initializer_list<PlotView*>{ranks_, timeline_, lanes_, topology_})
        view->set_stale(false);
    table_->setEnabled(true);
    verdict_->show_plan(*planned_);
    show_ranks();
    show_topology();
    topology_->select_rank(user_selected_
                               ? ranks_->selected_rank()
                               : rank_worth_showing(topology_of(*planned_, {}), ranks_->selected_rank()));
    show_group();
}

void ResultsView::show_error(const Error& error) {
    verdict_->show_error(error);
    for (PlotView* view : std::initializer_list<PlotView*>{ranks_, timeline_, lanes_, topology_}) {
        view->set_stale(true);
        view->set_placeholder(tr("Nothing to show yet"));
    }
    table_->setEnabled(false);
}

void ResultsView::show_ranks() {
    ranks_->set_plan(planned_->plan);
    if (!user_selected_) {
        const QSignalBlocker quiet(ranks_);
        ranks_->select_rank(planned_->plan->memory.peak_rank);
    }
    ranks_->set_heading(baseline_ ? tr("Now") : tr("Memory per rank"), plan_title(*planned_->plan));
    // One scale for both, or they could not be compared by eye.
    const double top = baseline_ ? std::max(ranks_->needed_top(), baseline_ranks_->needed_top()) : 0;
    ranks_->set_top(top);
    baseline_ranks_->set_top(top);
}

void ResultsView::show_group() {
    const auto& plan = planned_->plan;
    if (const StepTimeline* simulated = simulated_timeline())
        view_ = group() == simulated_->fullest.rank_group ? simulated_->fullest
                                                          : group_view(plan, group(), simulated);
    else if (group() == planned_->fullest.rank_group)
        view_ = planned_->fullest;
    else
        try {
            const StepTimeline closed_form = closed_form_step(*plan, group());
            view_ = group_view(plan, group(), &closed_form);
        } catch (const Error&) {  // no time: the verdict and the streams' place say why
            view_ = group_view(plan, group(), nullptr);
        }
    show_table();
    show_lanes();
    show_memory();
    show_time_in_words();
    show_what_if();
    show_difference();
}

void ResultsView::show_table() {
    const RankGroup* old =
        baseline_ ? &baseline_->plan->rank_groups.at(baseline_->plan->memory.worst_group) : nullptr;
    table_->set_groups(planned_->plan->rank_groups.at(group()), old);
}

void ResultsView::show_lanes() {
    const QString fidelity = simulated_ ? tr("simulated") : tr("closed form");
    lanes_->set_heading(tr("Streams of one step"), planned_->no_time ? tr("not timed") : fidelity);
    lanes_->set_placeholder(
        planned_->no_time
            ? tr("Nothing to simulate; the memory above is complete.\n%1").arg(reason(*planned_->no_time))
            : QString());
    lanes_->set_lanes(view_.lanes);
}

void ResultsView::show_memory() {
    const bool over_time = axis_ == StepAxis::time && !view_.lanes.empty();
    timeline_->set_memory(planned_->plan, group(), over_time ? view_.by_time : view_.by_operation);
    timeline_->set_heading(tr("Memory over one step"),
                           QStringList{over_time ? tr("allocated, over time") : tr("allocated, by operation"),
                                       group_name(*planned_->plan, group())}
                               .join(", "));
    if (over_time) timeline_->set_window(lanes_->begin_s(), lanes_->end_s());
}

void ResultsView::show_time_in_words() {
    const bool tokens = planned_->plan->scenario.model.batch == BatchKind::tokens;
    const auto simulated = simulated_ ? slowest_step_with_mean_wait(*simulated_) : std::nullopt;
    const auto& step = simulated ? simulated : planned_->slowest;
    const auto throughput = simulated ? std::optional(simulated_->throughput) : planned_->throughput;
    if (!step || !throughput) return;  // the verdict says why there is no time
    WaitOf wait = slows_a_step(planned_->what_if) ? WaitOf::slowest_rank : WaitOf::every_rank;
    if (simulated) wait = simulated_->rank_groups.size() > 1 ? WaitOf::mean_over_ranks : WaitOf::every_rank;
    const QString more = what_if_sentence(*planned_, simulated_ ? &*simulated_ : nullptr);
    verdict_->show_time(
        QStringList{time_sentence(*step, *throughput, tokens, wait), more}.join(' ').trimmed());
}

void ResultsView::show_topology() {
    topology_->set_topology(topology_of(*planned_, simulated_ ? simulated_->links : std::vector<LinkLoad>()));
}

void ResultsView::show_what_if() {
    what_if_->setPlainText(what_if_words(*planned_, simulated_ ? &*simulated_ : nullptr));
}

// Simulated against simulated, closed form against closed form.
void ResultsView::show_difference() {
    if (!baseline_) return verdict_->show_difference({});
    const StepTimeline *now = slowest_step(simulated_), *before = slowest_step(baseline_simulated_);
    if (now == nullptr || before == nullptr) {
        now = closed_form(*planned_);
        before = closed_form(*baseline_);
    }
    verdict_->show_difference(difference_sentence(*planned_->plan, *baseline_->plan, now, before));
}

void ResultsView::show_simulated(const Simulated& simulated) {
    if (!planned_ || simulated.plan != planned_->plan) return;
    simulated_ = simulated;
    // What was pinned before it had been simulated gets its simulation, too.
    if (baseline_ == planned_) baseline_simulated_ = simulated_;
    show_topology();
    show_group();
}

void ResultsView::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    table_->set_compact(width() < width_for_every_byte);
}

void ResultsView::set_axis(StepAxis axis) {
    axis_ = axis;
    if (planned_) show_memory();
}

void ResultsView::pin_baseline() {
    verdict_->pin_button()->setChecked(planned_ != nullptr);
    if (!planned_) return;
    baseline_ = planned_;
    baseline_simulated_ = simulated_;
    baseline_ranks_->set_plan(baseline_->plan);
    baseline_ranks_->set_heading(tr("Baseline"), plan_title(*baseline_->plan));
    show_ranks();
    show_table();
    show_difference();
    baseline_ranks_->show();
    const int half = std::max(1, (top_->width() - table_->minimumWidth()) / 2);
    top_->setSizes({half, half, table_->minimumWidth()});
}

void ResultsView::clear_baseline() {
    baseline_.reset();
    baseline_simulated_.reset();
    verdict_->pin_button()->setChecked(false);
    baseline_ranks_->hide();
    if (!planned_) return;
    show_ranks();
    show_table();
    show_difference();
}

}  // namespace zeroplan::gui
