#pragma once
#include <QLineEdit>
#include <QMainWindow>
#include <QTimer>
#include <QUndoStack>

#include "zeroplan/gui/planner.hpp"
#include "zeroplan/gui/remedy_search.hpp"
#include "zeroplan/gui/results_view.hpp"
#include "zeroplan/gui/scenario_form.hpp"
#include "zeroplan/gui/simulation.hpp"
#include "zeroplan/gui/theme.hpp"

namespace zeroplan::gui {

/// The window: form at the left, results at the right, both of one ScenarioRequest. Every change of the
/// request is one step of undo, is planned at once off this thread, and is simulated after a pause.
class MainWindow : public QMainWindow {
    Q_OBJECT
public:
    struct Options {
        std::optional<ScenarioRequest> request;  ///< what is shown first; absent: starting_request()
        QString simulator;                       ///< path of zeroplan-sim; "" = the one beside this program
        bool remember = false;                   ///< geometry and preferences over sessions
        bool simulate_by_itself = true;
        int pause_ms =
            500;  ///< without changes, before a simulation or a search for remedies starts by itself
    };
    explicit MainWindow(const Options& options, QWidget* parent = nullptr);

    const ScenarioRequest& request() const { return request_; }
    /// Undoable. `series`: edits with the same non-negative number are one step of undo.
    void change(const ScenarioRequest& request, const QString& what, int series = -1);
    /// A scenario file, or a model put into the current scenario; see opened().
    void open(const QString& path);
    /// False if it could not be written; the status line says why.
    bool save(const QString& path);
    bool export_picture(const QString& path);
    void simulate();
    void cancel_simulation();
    void set_theme(ThemeChoice theme);

    /// Nothing is being planned or simulated, and nothing will be without a change.
    bool settled() const;
    /// The plan that is shown, or why there is none.
    const PlanOutcome& outcome() const { return outcome_; }
    /// Why the last simulation failed; "" if it did not, or if the simulator refused what it doesn't model.
    const QString& simulation_failure() const { return simulation_failure_; }

    ScenarioForm& form() { return *form_; }
    ResultsView& results() { return *results_; }
    QUndoStack& undo_stack() { return undo_; }
    QLineEdit& command() { return *command_; }

Q_SIGNALS:
    void has_settled();

protected:
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;
    void closeEvent(QCloseEvent* event) override;

private:
    friend class RequestCommand;
    void build();
    void build_file_menu();
    void build_edit_menu();
    void build_view_menu();
    void build_simulation_menu();
    void build_help_menu();
    void add_plot_menu(PlotView& view);
    QWidget* build_command_row();
    void connect_parts();

    void apply(const ScenarioRequest& request);
    void edit(const std::string& pointer, const QString& value, bool continuous);
    void show_command(const QString& command);
    void show_outcome(const PlanOutcome& outcome);
    void show_simulated(const Simulated& simulated);
    void show_simulation_failure(const QString& why, bool refused);
    void plan_simulation();
    void show_idle_simulation();
    void update_title();
    void tell_if_settled();
    void ask_open();
    void ask_save(bool always_ask);
    void ask_export(QWidget& what);
    void copy(const QString& what, const QString& text);
    const Scenario* resolved() const;

    Options options_;
    ScenarioRequest request_;
    PlanOutcome outcome_;
    QString file_, simulation_failure_;
    QUndoStack undo_;
    Planner planner_;
    Simulation simulation_;
    RemedySearch remedies_;
    QTimer pause_;
    int series_ = 0;

    ScenarioForm* form_;
    ResultsView* results_;
    QLineEdit* command_;
};

}  // namespace zeroplan::gui
