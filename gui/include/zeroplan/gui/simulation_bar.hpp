#pragma once
#include <QProgressBar>
#include <QPushButton>
#include <QWidget>

#include "zeroplan/gui/elided_label.hpp"

namespace zeroplan::gui {

/// Starts and ends the simulation and says how it stands.
class SimulationBar : public QWidget {
    Q_OBJECT
public:
    explicit SimulationBar(QWidget* parent = nullptr);
    void show_idle(const QString& said, bool can_start);
    void show_running();
    void show_failure(const QString& why);
    QString message() const { return said_->whole_text(); }
    QPushButton* simulate_button() { return simulate_; }
    QPushButton* cancel_button() { return cancel_; }

Q_SIGNALS:
    void simulate();
    void cancel();

private:
    void say(const QString& said, bool failure);

    QPushButton *simulate_, *cancel_;
    QProgressBar* progress_;
    ElidedLabel* said_;
};

}  // namespace zeroplan::gui
