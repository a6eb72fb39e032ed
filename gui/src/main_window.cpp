#include "zeroplan/gui/main_window.hpp"

#include <QApplication>
#include <QCloseEvent>
#include <QFileInfo>
#include <QMimeData>
#include <QSettings>
#include <QStatusBar>
#include <QToolTip>
#include <algorithm>

#include "request_command.hpp"
#include "zeroplan/gui/picture.hpp"
#include "zeroplan/gui/request.hpp"
#include "zeroplan/gui/what_if_words.hpp"
#include "zeroplan/what_if_io.hpp"

namespace zeroplan::gui {

MainWindow::MainWindow(const Options& options, QWidget* parent)
    : QMainWindow(parent),
      options_(options),
      simulation_(options.simulator),
      remedies_(options.pause_ms),
      form_(new ScenarioForm),
      results_(new ResultsView),
      command_(new QLineEdit) {
    build();
    connect_parts();
    pause_.setSingleShot(true);
    pause_.setInterval(options_.pause_ms);
    resize(1280, 860);
    if (options_.remember) {
        const QSettings settings;
        restoreGeometry(settings.value("geometry").toByteArray());
    }
    show_idle_simulation();
    const ScenarioRequest first = options_.request.value_or(starting_request());
    file_ = text(first.file);
    apply(first);
}

void MainWindow::connect_parts() {
    connect(form_, &ScenarioForm::edited, this, &MainWindow::edit);
    connect(form_, &ScenarioForm::settled, this, [this] { ++series_; });
    connect(&planner_, &Planner::planned, this, &MainWindow::show_outcome);
    connect(&simulation_, &Simulation::simulated, this, &MainWindow::show_simulated);
    connect(&simulation_, &Simulation::failed, this, &MainWindow::show_simulation_failure);
    connect(&remedies_, &RemedySearch::found, this, [this](const std::vector<Remedy>& remedies) {
        results_->verdict().show_remedies(remedies_sentence(remedies));
        tell_if_settled();
    });
    connect(&remedies_, &RemedySearch::idle, this, &MainWindow::tell_if_settled);
    connect(&simulation_, &Simulation::cancelled, this, [this] {
        results_->simulation_bar().show_idle(tr("Simulation cancelled; the closed form is shown."), true);
        tell_if_settled();
    });
    connect(&results_->simulation_bar(), &SimulationBar::simulate, this, &MainWindow::simulate);
    connect(&results_->simulation_bar(), &SimulationBar::cancel, this, &MainWindow::cancel_simulation);
    connect(&pause_, &QTimer::timeout, this, &MainWindow::simulate);
    connect(&undo_, &QUndoStack::cleanChanged, this, &MainWindow::update_title);
}

const Scenario* MainWindow::resolved() const {
    return outcome_.planned && same(outcome_.request, request_) ? &outcome_.planned->plan->scenario : nullptr;
}

void MainWindow::change(const ScenarioRequest& request, const QString& what, int series) {
    if (same(request, request_)) return;
    undo_.push(new RequestCommand(*this, request_, request, what, series));
}

void MainWindow::edit(const std::string& pointer, const QString& value, bool continuous) {
    const auto at = static_cast<int>(&field(pointer) - fields().data());
    const int series = continuous ? series_ * static_cast<int>(fields().size()) + at : -1;
    if (!continuous) ++series_;
    try {
        change(edited(request_, resolved(), pointer, value), field(pointer).name(), series);
    } catch (const Error& error) {
        results_->show_error(error);
        form_->mark_error(&error);
    }
}

void MainWindow::apply(const ScenarioRequest& request) {
    request_ = request;
    pause_.stop();
    simulation_.cancel();
    remedies_.forget();
    simulation_failure_.clear();
    form_->show_request(request_, nullptr);
    show_command(command_line(request_));
    planner_.request(request_);
    update_title();
}

void MainWindow::show_command(const QString& command) {
    if (command_->text() == command) return;  // keeps what is selected in it
    command_->setText(command);
    command_->setCursorPosition(0);
}

void MainWindow::show_outcome(const PlanOutcome& outcome) {
    outcome_ = outcome;
    if (outcome.planned) {
        results_->show_planned(outcome.planned);
        form_->show_request(request_, &outcome.planned->plan->scenario, &outcome.planned->what_if);
        if (resolved() != nullptr) show_command(command_line(request_, outcome.planned->what_if));
        statusBar()->showMessage(tr("Planned in %1").arg(text(format_seconds(outcome.planned->seconds))),
                                 4000);
    } else {
        statusBar()->clearMessage();
        results_->show_error(*outcome.error);
    }
    form_->mark_error(outcome.error ? &*outcome.error : nullptr);
    show_idle_simulation();
    if (options_.simulate_by_itself) plan_simulation();
    if (resolved() != nullptr && outcome.planned->plan->memory.verdict == Verdict::does_not_fit)
        remedies_.start(outcome.planned->plan);
    tell_if_settled();
}

void MainWindow::plan_simulation() {
    if (resolved() != nullptr && results_->planned()->timeline && simulation_.available()) pause_.start();
}

void MainWindow::show_idle_simulation() {
    SimulationBar& bar = results_->simulation_bar();
    if (resolved() == nullptr)
        bar.show_idle({}, false);
    else if (results_->planned()->no_time)
        bar.show_idle(tr("Nothing to simulate: the time of this step is not modelled."), false);
    else if (!simulation_.available())
        bar.show_idle(tr("Closed form. %1 is not there to simulate: build it with libsimgrid-dev installed.")
                          .arg(QFileInfo(simulation_.program()).fileName()),
                      false);
    else if (slows_a_step(results_->planned()->what_if))
        bar.show_idle(tr("Closed form: every stream has the links for itself, and no what-if is in the lanes "
                         "until it is simulated."),
                      true);
    else
        bar.show_idle(tr("Closed form: every stream has the links for itself."), true);
}

void MainWindow::simulate() {
    pause_.stop();
    if (resolved() == nullptr || results_->planned()->no_time || !simulation_.available())
        return tell_if_settled();
    simulation_failure_.clear();
    results_->simulation_bar().show_running();
    simulation_.start(outcome_.planned->plan, outcome_.planned->what_if);
}

void MainWindow::cancel_simulation() {
    pause_.stop();
    simulation_.cancel();
}

void MainWindow::show_simulated(const Simulated& simulated) {
    results_->show_simulated(simulated);
    const StepTimeline* step = slowest_step(simulated);
    QString said = tr("Simulated in %1").arg(text(format_seconds(simulated.wall_s)));
    if (const auto& closed_form = results_->planned()->slowest; step != nullptr && closed_form)
        said +=
            tr(": a step takes %1, the closed form says %2")
                .arg(text(format_seconds(step->step_time_s)), text(format_seconds(closed_form->step_time_s)));
    results_->simulation_bar().show_idle(said + '.', true);
    tell_if_settled();
}

void MainWindow::show_simulation_failure(const QString& why, bool refused) {
    if (refused) {
        results_->simulation_bar().show_idle(tr("Closed form; not simulated: %1").arg(why), true);
    } else {
        simulation_failure_ = why;
        results_->simulation_bar().show_failure(why);
    }
    tell_if_settled();
}

bool MainWindow::settled() const {
    return !planner_.busy() && !pause_.isActive() && !simulation_.running() && !remedies_.busy();
}

void MainWindow::tell_if_settled() {
    if (settled()) Q_EMIT has_settled();
}

void MainWindow::open(const QString& path) {
    try {
        const ScenarioRequest request = opened(request_, path);
        if (!request.file.empty() && request.settings.empty()) file_ = path;
        change(request, tr("open %1").arg(QFileInfo(path).fileName()));
        undo_.setClean();
        update_title();
    } catch (const Error& error) {
        results_->show_error(error);
    }
}

bool MainWindow::save(const QString& path) {
    try {
        if (resolved() == nullptr)
            throw Error(ErrorCode::invalid_input, "only a configuration that can be planned can be saved",
                        "resolve what the window says first");
        const WhatIf what_if = resolve_what_if(request_, *resolved());
        write_text_file(path.toStdString(), scenario_json(*resolved(), what_if) + "\n");
    } catch (const Error& error) {
        statusBar()->showMessage(sentence(error));
        return false;
    }
    file_ = path;
    undo_.setClean();
    update_title();
    statusBar()->showMessage(tr("Saved %1").arg(path), 4000);
    return true;
}

bool MainWindow::export_picture(const QString& path) {
    try {
        write_picture(*results_, path);
    } catch (const Error& error) {
        statusBar()->showMessage(sentence(error));
        return false;
    }
    statusBar()->showMessage(tr("Wrote %1").arg(path), 4000);
    return true;
}

void MainWindow::update_title() {
    const QString name = file_.isEmpty() ? tr("new scenario") : QFileInfo(file_).fileName();
    setWindowTitle(name + "[*] — zeroplan");
    setWindowModified(!undo_.isClean());
}

void MainWindow::set_theme(ThemeChoice theme) {
    const QPalette palette = theme == ThemeChoice::light  ? light_palette()
                             : theme == ThemeChoice::dark ? dark_palette()
                                                          : QPalette();
    QApplication::setPalette(palette);
    QToolTip::setPalette(palette);  // does not follow by itself
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
    if (event->mimeData()->hasUrls() && event->mimeData()->urls().first().isLocalFile())
        event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
    if (!event->mimeData()->hasUrls()) return;
    open(event->mimeData()->urls().first().toLocalFile());
    event->acceptProposedAction();
}

void MainWindow::closeEvent(QCloseEvent* event) {
    if (options_.remember) QSettings().setValue("geometry", saveGeometry());
    QMainWindow::closeEvent(event);
}

}  // namespace zeroplan::gui
