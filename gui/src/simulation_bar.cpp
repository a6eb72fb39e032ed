#include "zeroplan/gui/simulation_bar.hpp"

#include <QApplication>
#include <QHBoxLayout>

#include "zeroplan/gui/theme.hpp"

namespace zeroplan::gui {

SimulationBar::SimulationBar(QWidget* parent)
    : QWidget(parent),
      simulate_(new QPushButton(tr("Sim&ulate"))),
      cancel_(new QPushButton(tr("Cancel"))),
      progress_(new QProgressBar),
      said_(new ElidedLabel) {
    simulate_->setToolTip(tr("Run the step on SimGrid, where streams and ranks share links (F5)"));
    cancel_->setToolTip(tr("End the simulation (Esc)"));
    progress_->setRange(0, 0);
    progress_->setFixedWidth(110);
    progress_->setTextVisible(false);
    progress_->setMaximumHeight(simulate_->sizeHint().height() / 2);
    progress_->setAccessibleName(tr("Simulation runs"));
    auto* line = new QHBoxLayout(this);
    line->setContentsMargins(0, 0, 0, 0);
    line->setSpacing(8);
    line->addWidget(simulate_);
    line->addWidget(cancel_);
    line->addWidget(progress_);
    line->addWidget(said_, 1);
    connect(simulate_, &QPushButton::clicked, this, &SimulationBar::simulate);
    connect(cancel_, &QPushButton::clicked, this, &SimulationBar::cancel);
    show_idle({}, false);
}

void SimulationBar::show_idle(const QString& said, bool can_start) {
    simulate_->setEnabled(can_start);
    cancel_->hide();
    progress_->hide();
    say(said, false);
}

void SimulationBar::show_running() {
    simulate_->setEnabled(false);
    cancel_->show();
    progress_->show();
    say(tr("Simulating …"), false);
}

void SimulationBar::show_failure(const QString& why) {
    show_idle({}, true);
    say(why, true);
}

void SimulationBar::say(const QString& said, bool failure) {
    QPalette inked = QApplication::palette();
    if (failure) inked.setColor(QPalette::WindowText, overflow_colour(is_dark(inked)));
    said_->setPalette(inked);
    said_->set_whole_text(said);
    setAccessibleDescription(said);
}

}  // namespace zeroplan::gui
