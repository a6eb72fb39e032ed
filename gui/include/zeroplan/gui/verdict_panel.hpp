#pragma once
#include <QFrame>
#include <QLabel>

#include "zeroplan/gui/planner.hpp"

namespace zeroplan::gui {

/// "Fits: 61.2 GiB (65.7 GB) of 79.1 GiB (84.9 GB), 17.9 GiB free" …
QString verdict_sentence(const Plan& plan);
/// Where the peak is: phase, rank, operation, interval.
QString peak_sentence(const Plan& plan);
/// "2.31 s a step, 8,870 tokens/s per GPU, 41 % of peak flops"; exposed communication and bubble.
QString time_sentence(const StepTimeline& timeline, const Throughput& throughput, bool tokens);

/// The answer in words at the top: icon and colour by verdict, or the error that stands in its way.
class VerdictPanel : public QFrame {
    Q_OBJECT
public:
    explicit VerdictPanel(QWidget* parent = nullptr);
    void show_plan(const Planned& planned);
    /// The plan that is shown below, if any, belongs to an earlier configuration.
    void show_error(const Error& error);
    void show_time(const QString& sentence);
    QString headline() const { return headline_->text(); }
    QString details() const { return details_->text(); }
    QString time() const { return time_->text(); }
    bool shows_error() const { return shows_error_; }

protected:
    void changeEvent(QEvent* event) override;

private:
    void restyle();
    void show_notes(const std::vector<Warning>& warnings);

    QLabel *icon_, *headline_, *details_, *time_, *notes_;
    Verdict verdict_ = Verdict::fits;
    bool shows_error_ = false, restyling_ = false;
};

}  // namespace zeroplan::gui
