#include <QActionGroup>
#include <QApplication>
#include <QClipboard>
#include <QFileDialog>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QMenuBar>
#include <QMessageBox>
#include <QPushButton>
#include <QScrollArea>
#include <QSplitter>
#include <QStatusBar>
#include <QVBoxLayout>

#include "zeroplan/gui/main_window.hpp"
#include "zeroplan/gui/picture.hpp"
#include "zeroplan/version.hpp"

// The window's shell: layout, menus and the dialogs behind them.
namespace zeroplan::gui {

void MainWindow::build() {
    setAcceptDrops(true);
    auto* form_area = new QScrollArea;
    form_area->setWidget(form_);
    form_area->setWidgetResizable(true);
    form_area->setFrameShape(QFrame::NoFrame);
    form_area->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    form_area->setFocusPolicy(Qt::NoFocus);
    form_area->setMinimumWidth(form_->minimumSizeHint().width() + 16);

    auto* right = new QWidget;
    auto* column = new QVBoxLayout(right);
    column->setContentsMargins(6, 6, 6, 0);
    column->addWidget(results_, 1);
    column->addWidget(build_command_row());

    auto* split = new QSplitter;
    split->setChildrenCollapsible(false);
    split->addWidget(form_area);
    split->addWidget(right);
    split->setStretchFactor(1, 1);
    split->setSizes({form_area->minimumWidth(), 1000});
    setCentralWidget(split);

    build_file_menu();
    build_edit_menu();
    build_view_menu();
    build_simulation_menu();
    build_help_menu();
    for (PlotView* view :
         std::initializer_list<PlotView*>{&results_->baseline_ranks(), &results_->ranks(),
                                          &results_->timeline(), &results_->lanes(), &results_->topology()})
        add_plot_menu(*view);
}

QWidget* MainWindow::build_command_row() {
    command_->setReadOnly(true);
    command_->setAccessibleName(tr("The same plan as a command"));
    command_->setToolTip(tr("The same plan on the command line"));
    QFont mono("monospace");
    mono.setStyleHint(QFont::Monospace);
    command_->setFont(mono);
    auto* copy_button = new QPushButton(tr("&Copy"));
    copy_button->setToolTip(tr("Copy the command"));
    connect(copy_button, &QPushButton::clicked, this, [this] { copy(tr("the command"), command_->text()); });
    auto* row = new QWidget;
    auto* line = new QHBoxLayout(row);
    line->setContentsMargins(0, 0, 0, 0);
    line->addWidget(command_, 1);
    line->addWidget(copy_button);
    return row;
}

void MainWindow::build_file_menu() {
    QMenu* menu = menuBar()->addMenu(tr("&File"));
    menu->addAction(tr("&Open scenario or model…"), QKeySequence::Open, this, &MainWindow::ask_open);
    menu->addAction(tr("&Save scenario"), QKeySequence::Save, this, [this] { ask_save(false); });
    menu->addAction(tr("Save scenario &as…"), QKeySequence::SaveAs, this, [this] { ask_save(true); });
    menu->addSeparator();
    menu->addAction(tr("&Export picture…"), QKeySequence(tr("Ctrl+E")), this,
                    [this] { ask_export(*results_); });
    menu->addSeparator();
    menu->addAction(tr("&Quit"), QKeySequence::Quit, this, &QWidget::close);
}

void MainWindow::build_edit_menu() {
    QMenu* menu = menuBar()->addMenu(tr("&Edit"));
    QAction* undo = undo_.createUndoAction(this, tr("&Undo"));
    undo->setShortcut(QKeySequence::Undo);
    QAction* redo = undo_.createRedoAction(this, tr("&Redo"));
    redo->setShortcuts({QKeySequence(QKeySequence::Redo), QKeySequence(tr("Ctrl+Y"))});
    menu->addActions({undo, redo});
    menu->addSeparator();
    menu->addAction(tr("Copy &table"), QKeySequence(tr("Ctrl+Shift+C")), this,
                    [this] { copy(tr("the table"), results_->table().tab_separated()); });
    menu->addAction(tr("Copy &command"), QKeySequence(tr("Ctrl+Shift+K")), this,
                    [this] { copy(tr("the command"), command_->text()); });
    const auto copy_verdict = [this] { copy(tr("the verdict"), results_->verdict().plain_text()); };
    menu->addAction(tr("Copy &verdict"), QKeySequence(tr("Ctrl+Shift+V")), this, copy_verdict);
    connect(results_->verdict().copy_button(), &QToolButton::clicked, this, copy_verdict);
}

void MainWindow::build_view_menu() {
    QMenu* menu = menuBar()->addMenu(tr("&View"));
    menu->addAction(tr("&Pin as baseline"), QKeySequence(tr("Ctrl+B")), results_, &ResultsView::pin_baseline);
    menu->addAction(tr("&Clear baseline"), QKeySequence(tr("Ctrl+Shift+B")), results_,
                    &ResultsView::clear_baseline);
    menu->addSeparator();

    const auto add_page = [&](const QString& name, const char* keys, ResultsPage page) {
        menu->addAction(name, QKeySequence(tr(keys)), this, [this, page] { results_->set_page(page); });
    };
    add_page(tr("Memor&y and time"), "Ctrl+1", ResultsPage::memory);
    add_page(tr("Clust&er"), "Ctrl+2", ResultsPage::cluster);
    add_page(tr("&What if"), "Ctrl+3", ResultsPage::what_if);
    menu->addSeparator();

    auto* axes = new QActionGroup(this);
    const auto add_axis = [&](const QString& name, StepAxis axis) {
        QAction* action = axes->addAction(name);
        action->setCheckable(true);
        action->setChecked(results_->axis() == axis);
        connect(action, &QAction::triggered, this, [this, axis] { results_->set_axis(axis); });
    };
    add_axis(tr("Memory over &time"), StepAxis::time);
    add_axis(tr("Memory by &operation"), StepAxis::operations);
    menu->addActions(axes->actions());
    menu->addSeparator();

    QMenu* theme_menu = menu->addMenu(tr("T&heme"));
    auto* themes = new QActionGroup(this);
    const auto add_theme = [&](const QString& name, ThemeChoice theme) {
        QAction* action = themes->addAction(name);
        action->setCheckable(true);
        action->setChecked(theme == ThemeChoice::system);
        connect(action, &QAction::triggered, this, [this, theme] { set_theme(theme); });
    };
    add_theme(tr("As the &system"), ThemeChoice::system);
    add_theme(tr("&Light"), ThemeChoice::light);
    add_theme(tr("&Dark"), ThemeChoice::dark);
    theme_menu->addActions(themes->actions());
}

void MainWindow::build_simulation_menu() {
    QMenu* menu = menuBar()->addMenu(tr("&Simulation"));
    menu->addAction(tr("&Simulate now"), QKeySequence(Qt::Key_F5), this, &MainWindow::simulate);
    menu->addAction(tr("&Cancel"), QKeySequence(Qt::Key_Escape), this, &MainWindow::cancel_simulation);
    menu->addSeparator();
    QAction* automatic = menu->addAction(tr("&After every change"));
    automatic->setCheckable(true);
    automatic->setChecked(options_.simulate_by_itself);
    connect(automatic, &QAction::toggled, this, [this](bool on) {
        options_.simulate_by_itself = on;
        if (on)
            plan_simulation();
        else
            pause_.stop();
    });
}

void MainWindow::build_help_menu() {
    QMenu* menu = menuBar()->addMenu(tr("&Help"));
    menu->addAction(tr("&Keys in the plots"), QKeySequence::HelpContents, this, [this] {
        QMessageBox::information(
            this, tr("Keys in the plots"),
            tr("<p><b>Memory per rank</b>: ← → next bar, Page Up and Page Down next node, Home, End, P "
               "fullest rank, "
               "Z scale to the data.</p><p><b>Memory over one step</b>: ← → next moment, P the peak.</p>"
               "<p><b>Streams</b>: wheel, + and − zoom, drag, ← and → move, F the whole step; double-click "
               "zooms "
               "in.</p><p><b>Cluster</b>: ← → next rank, Page Up and Page Down next node, Home, End; a click "
               "selects "
               "a rank or a node.</p><p>Hover anywhere for exact figures; right-click to copy or export a "
               "plot.</p>"));
    });
    menu->addAction(tr("&About zeroplan"), this, [this] {
        QMessageBox::about(
            this, tr("About zeroplan"),
            tr("<b>zeroplan %1</b><p>Plans, simulates and runs ZeRO training.</p>")
                .arg(QString::fromUtf8(version().data(), static_cast<qsizetype>(version().size()))));
    });
}

void MainWindow::add_plot_menu(PlotView& view) {
    view.setContextMenuPolicy(Qt::CustomContextMenu);
    connect(&view, &QWidget::customContextMenuRequested, this, [this, &view](const QPoint& position) {
        QMenu menu;
        menu.addAction(tr("Copy picture"), this, [&] {
            QApplication::clipboard()->setPixmap(view.grab());
            statusBar()->showMessage(tr("Copied the picture"), 3000);
        });
        menu.addAction(tr("Export picture…"), this, [&] { ask_export(view); });
        menu.exec(view.mapToGlobal(position));
    });
}

void MainWindow::copy(const QString& what, const QString& text) {
    QApplication::clipboard()->setText(text);
    statusBar()->showMessage(tr("Copied %1").arg(what), 3000);
}

void MainWindow::ask_open() {
    const QString path =
        QFileDialog::getOpenFileName(this, tr("Open a scenario or a model"), QFileInfo(file_).path(),
                                     tr("Scenarios and models (*.json *.safetensors);;All files (*)"));
    if (!path.isEmpty()) open(path);
}

void MainWindow::ask_save(bool always_ask) {
    QString path = file_;
    if (always_ask || path.isEmpty())
        path = QFileDialog::getSaveFileName(
            this, tr("Save the scenario"), path.isEmpty() ? "scenario.json" : path, tr("Scenarios (*.json)"));
    if (!path.isEmpty()) save(path);
}

void MainWindow::ask_export(QWidget& what) {
    const QString path = QFileDialog::getSaveFileName(this, tr("Export the picture"), "zeroplan.png",
                                                      tr("Pictures (*.png *.svg)"));
    if (path.isEmpty()) return;
    try {
        write_picture(what, path);
        statusBar()->showMessage(tr("Wrote %1").arg(path), 4000);
    } catch (const Error& error) {
        statusBar()->showMessage(sentence(error));
    }
}

}  // namespace zeroplan::gui
