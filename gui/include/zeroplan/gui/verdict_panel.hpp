#pragma once
#include <QFrame>
#include <QLabel>
#include <QToolButton>

#include "zeroplan/gui/elided_label.hpp"
#include "zeroplan/gui/planner.hpp"

namespace zeroplan::gui {

/// "Fits: 61.2 GiB (65.7 GB) of 79.1 GiB (84.9 GB), 17.9 GiB free" …
QString verdict_sentence(const Plan& plan);
/// Where the peak is: phase, rank, operation, interval.
QString peak_sentence(const Plan& plan);
/// Whose exposed communication and idle time a sentence tells.
enum class WaitOf : std::uint8_t { every_rank, mean_over_ranks, slowest_rank };
/// "Step 2.310 s (closed form): 8,870 tokens/s per GPU, MFU 41 %, exposed communication 5 %, idle 1 %".
QString time_sentence(const StepTimeline& timeline, const Throughput& throughput, bool tokens,
                      WaitOf wait = WaitOf::every_rank);

/// "Against the baseline (llama-3-8b, ZeRO 3, 16 GPUs): device peak +1.50 GiB (+3 %), step −12.0 ms (−1.2
/// %)": times as both know them, nothing of them where one of the two has none.
QString difference_sentence(const Plan& now, const Plan& baseline, const StepTimeline* now_step,
                            const StepTimeline* baseline_step);
/// "One change makes it fit: --recompute full (61.20 GiB; step 30 % longer), …"; "" if there is nothing to
/// say.
QString remedies_sentence(const std::vector<Remedy>& remedies);
/// Which rules and constants the figures rest on, a line each.
QString provenance(const Plan& plan);
/// "llama-3-8b, ZeRO 3, 16 GPUs"
QString plan_title(const Plan& plan);

/// The answer in words at the top: icon and colour by verdict, or the error that stands in its way.
class VerdictPanel : public QFrame {
    Q_OBJECT
public:
    explicit VerdictPanel(QWidget* parent = nullptr);
    void show_plan(const Planned& planned);
    /// The plan that is shown below, if any, belongs to an earlier configuration.
    void show_error(const Error& error);
    void show_time(const QString& sentence);
    /// Against the pinned baseline; "" if none is pinned.
    void show_difference(const QString& sentence);
    /// What makes it fit; "" while nobody knows.
    void show_remedies(const QString& sentence);
    /// Everything that the panel says, a sentence a line.
    QString plain_text() const;
    QString headline() const { return headline_->text(); }
    QString details() const { return details_->text(); }
    QString time() const { return time_->text(); }
    QString remedies() const { return remedies_->text(); }
    QString difference() const { return difference_->text(); }
    QToolButton* pin_button() { return pin_; }
    QToolButton* copy_button() { return copy_; }
    bool shows_error() const { return shows_error_; }

protected:
    void changeEvent(QEvent* event) override;

private:
    void arrange();
    void say(QLabel& label, const QString& sentence);
    void take_height();
    void restyle();
    void show_notes(const std::vector<Warning>& warnings);

    QLabel *icon_, *headline_, *details_, *time_, *remedies_, *difference_;
    ElidedLabel* notes_;
    QToolButton *pin_, *copy_;
    Verdict verdict_ = Verdict::fits;
    bool shows_error_ = false, restyling_ = false;
};

}  // namespace zeroplan::gui
