#include "zeroplan/gui/verdict_panel.hpp"

#include <QApplication>
#include <QEvent>
#include <QHBoxLayout>
#include <QPainter>
#include <QPainterPath>
#include <QVBoxLayout>
#include <cmath>

#include "zeroplan/gui/theme.hpp"
#include "zeroplan/gui/what_if_words.hpp"

namespace zeroplan::gui {

namespace {

// A tick, an exclamation mark or a cross in a disc: the verdict does not rest on colour.
QPixmap verdict_icon(Verdict verdict, const QColor& colour, double scale) {
    constexpr int size = 36;
    QPixmap pixmap(static_cast<int>(size * scale), static_cast<int>(size * scale));
    pixmap.setDevicePixelRatio(scale);
    pixmap.fill(Qt::transparent);
    QPainter painter(&pixmap);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setBrush(colour);
    painter.setPen(Qt::NoPen);
    painter.drawEllipse(QRectF(2, 2, size - 4, size - 4));
    painter.setPen(QPen(ink_on(colour), 3.2, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
    painter.setBrush(Qt::NoBrush);
    switch (verdict) {
        case Verdict::fits: {
            const QPointF tick[] = {{11, 18.5}, {16, 23.5}, {25, 13}};
            painter.drawPolyline(tick, 3);
            break;
        }
        case Verdict::marginal:
            painter.drawLine(QPointF(18, 10), QPointF(18, 20));
            painter.drawPoint(QPointF(18, 26));
            break;
        case Verdict::does_not_fit:
            painter.drawLine(QPointF(12, 12), QPointF(24, 24));
            painter.drawLine(QPointF(24, 12), QPointF(12, 24));
            break;
    }
    return pixmap;
}

QToolButton* word_button(const QString& word, const QString& tooltip) {
    auto* button = new QToolButton;
    button->setText(word);
    button->setToolTip(tooltip);
    button->setFocusPolicy(Qt::StrongFocus);
    return button;
}

// " (+3 %)"; nothing where there is nothing to compare with.
QString relative(double now, double before) {
    if (!(before > 0)) return {};
    const double change = now / before - 1;
    return QString(" (%1%2)").arg(change < 0 ? "−" : "+", percent(std::abs(change)));
}

QLabel* text_label() {
    auto* label = new QLabel;
    label->setWordWrap(true);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    return label;
}

// Says no more than the changes' own verdicts do: a marginal plan may fit or not.
QString remedies_lead(const std::vector<Remedy>& remedies) {
    const auto any = [&](Verdict verdict) {
        return std::any_of(remedies.begin(), remedies.end(),
                           [&](const Remedy& remedy) { return remedy.verdict == verdict; });
    };
    if (any(Verdict::does_not_fit)) return QObject::tr("No single change makes it fit; the closest is %1.");
    if (!any(Verdict::fits)) return QObject::tr("One change may make it fit: %1.");
    return QObject::tr("One change makes it fit: %1.");
}

}  // namespace

QString verdict_sentence(const Plan& plan) {
    const MemorySummary& memory = plan.memory;
    const QString peak = both_units(memory.overall_peak_device), capacity = both_units(memory.capacity);
    switch (memory.verdict) {
        case Verdict::fits:
            return QObject::tr("Fits: %1 of %2, %3 free")
                .arg(peak, capacity,
                     text(format_gib(difference(memory.capacity, memory.overall_peak_device))));
        case Verdict::marginal:
            return QObject::tr("Marginal: %1 to %2 against %3")
                .arg(text(format_gib(memory.low)), text(format_gib(memory.high)), capacity);
        case Verdict::does_not_fit:
            break;
    }
    if (memory.overall_peak_device <= memory.capacity && memory.host_per_node > memory.host_capacity)
        return QObject::tr("Does not fit: host memory of a node, %1 of %2")
            .arg(both_units(memory.host_per_node), both_units(memory.host_capacity));
    return QObject::tr("Does not fit: rank %1 is over by %2")
        .arg(memory.peak_rank)
        .arg(both_units(difference(memory.overall_peak_device, memory.capacity)));
}

QString peak_sentence(const Plan& plan) {
    const MemorySummary& memory = plan.memory;
    QString said = QObject::tr("Device peak %1 on rank %2 in %3")
                       .arg(both_units(memory.overall_peak_device))
                       .arg(memory.peak_rank)
                       .arg(spoken(to_string(memory.peak_phase)));
    if (!memory.peak_operation.empty()) said += QObject::tr(" at “%1”").arg(text(memory.peak_operation));
    if (memory.low != memory.high)
        said += QObject::tr("; interval %1 to %2")
                    .arg(text(format_gib(memory.low)), text(format_gib(memory.high)));
    if (memory.host_per_node > Bytes{})
        said += QObject::tr("; host memory of a node %1 of %2")
                    .arg(text(format_gib(memory.host_per_node)), text(format_gib(memory.host_capacity)));
    return said + '.';
}

QString time_sentence(const StepTimeline& timeline, const Throughput& throughput, bool tokens, WaitOf wait) {
    QString said =
        QObject::tr("Step %1 (%2)").arg(text(format_seconds(timeline.step_time_s)), text(timeline.fidelity));
    said += QObject::tr(": %1 %2/s per GPU")
                .arg(text(format_count(static_cast<std::uint64_t>(throughput.tokens_per_s_per_gpu + 0.5))),
                     tokens ? QObject::tr("tokens") : QObject::tr("samples"));
    if (throughput.mfu > 0) said += QObject::tr(", MFU %1").arg(percent(throughput.mfu));
    if (throughput.hfu > throughput.mfu) said += QObject::tr(", HFU %1").arg(percent(throughput.hfu));
    if (timeline.step_time_s > 0)
        said += QObject::tr(", exposed communication %1, idle %2")
                    .arg(percent(timeline.exposed_communication_s / timeline.step_time_s),
                         percent(timeline.bubble_s / timeline.step_time_s));
    if (wait == WaitOf::mean_over_ranks) said += QObject::tr(" (mean over all ranks)");
    if (wait == WaitOf::slowest_rank) said += QObject::tr(" (of the slowest rank)");
    return said + '.';
}

QString plan_title(const Plan& plan) {
    const Scenario& s = plan.scenario;
    return QObject::tr("%1, ZeRO %2, %3 GPUs")
        .arg(text(s.model.name))
        .arg(s.training.zero_stage)
        .arg(text(format_count(s.world_size())));
}

QString difference_sentence(const Plan& now, const Plan& baseline, const StepTimeline* now_step,
                            const StepTimeline* baseline_step) {
    const Bytes peak = now.memory.overall_peak_device, before = baseline.memory.overall_peak_device;
    QString said = QObject::tr("Against the baseline (%1): device peak %2")
                       .arg(plan_title(baseline), signed_difference(peak, before));
    if (peak != before) said += relative(peak.gib(), before.gib());
    if (now_step != nullptr && baseline_step != nullptr) {
        const double change = now_step->step_time_s - baseline_step->step_time_s;
        said += QObject::tr(", step %1%2%3")
                    .arg(change < 0 ? "−" : "+", text(format_seconds(std::abs(change))),
                         relative(now_step->step_time_s, baseline_step->step_time_s));
    }
    return said + '.';
}

QString remedies_sentence(const std::vector<Remedy>& remedies) {
    if (remedies.empty()) return {};
    QStringList changes;
    for (const Remedy& remedy : remedies) {
        const QString verdict = remedy.verdict == Verdict::marginal ? QObject::tr("may fit; ") : QString();
        changes << QObject::tr("%1 (%2; %3%4)")
                       .arg(text(remedy.flags), text(format_gib(remedy.overall_peak_device)), verdict,
                            text(remedy.price));
    }
    return remedies_lead(remedies).arg(changes.join(QObject::tr(", or ")));
}

QString provenance(const Plan& plan) {
    QStringList lines{QObject::tr("Sizes by the rules of: %1").arg(text(plan.rule_set))};
    for (const Constant& constant : plan.constants)
        lines << QObject::tr("%1 = %2 %3: %4, %5")
                     .arg(text(constant.name))
                     .arg(constant.value, 0, 'g', 6)
                     .arg(text(constant.unit), text(constant.kind), text(constant.source));
    return lines.join('\n');
}

VerdictPanel::VerdictPanel(QWidget* parent)
    : QFrame(parent),
      icon_(new QLabel),
      headline_(text_label()),
      details_(text_label()),
      time_(text_label()),
      remedies_(text_label()),
      difference_(text_label()),
      notes_(new ElidedLabel),
      pin_(word_button(tr("Pin"),
                       tr("Keep this plan as the baseline that others are compared with (Ctrl+B)"))),
      copy_(word_button(tr("Copy"), tr("Copy the verdict (Ctrl+Shift+V)"))) {
    setObjectName("verdict");
    setFrameShape(QFrame::StyledPanel);
    setAutoFillBackground(true);
    for (QToolButton* button : {pin_, copy_})
        button->setSizePolicy(QSizePolicy::MinimumExpanding, QSizePolicy::Fixed);
    pin_->setCheckable(true);
    connect(pin_, &QToolButton::toggled, this,
            [this](bool pinned) { pin_->setText(pinned ? tr("Unpin") : tr("Pin")); });
    copy_->setAccessibleName(tr("Copy the verdict"));
    pin_->setAccessibleName(tr("Pin as baseline"));
    arrange();
    QFont large = font();
    large.setPointSizeF(large.pointSizeF() * 1.3);
    large.setBold(true);
    headline_->setFont(large);
    notes_->hide();
    time_->hide();
    remedies_->hide();
    difference_->hide();
    restyle();
}

// Boxes in boxes: a grid with items across several rows loses the height of a text that wraps.
void VerdictPanel::arrange() {
    auto* buttons = new QVBoxLayout;
    buttons->setSpacing(2);
    buttons->addWidget(pin_);
    buttons->addWidget(copy_);
    buttons->addStretch();
    auto* texts = new QVBoxLayout;
    texts->setSpacing(1);
    for (QLabel* label : {details_, time_, remedies_, difference_}) texts->addWidget(label);
    texts->addWidget(notes_);
    texts->addStretch();
    auto* below = new QHBoxLayout;
    below->setSpacing(10);
    below->addLayout(texts, 1);
    below->addLayout(buttons);
    auto* said = new QVBoxLayout;
    said->setSpacing(1);
    said->addWidget(headline_);
    said->addLayout(below, 1);
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(10, 6, 10, 6);
    row->setSpacing(10);
    row->addWidget(icon_, 0, Qt::AlignTop);
    row->addLayout(said, 1);
}

void VerdictPanel::show_plan(const Planned& planned) {
    shows_error_ = false;
    verdict_ = planned.plan->memory.verdict;
    headline_->setText(verdict_sentence(*planned.plan));
    details_->setText(peak_sentence(*planned.plan));
    headline_->setToolTip(provenance(*planned.plan));
    details_->setToolTip(provenance(*planned.plan));
    const bool tokens = planned.plan->scenario.model.batch == BatchKind::tokens;
    if (planned.slowest && planned.throughput)
        show_time(time_sentence(*planned.slowest, *planned.throughput, tokens,
                                slows_a_step(planned.what_if) ? WaitOf::slowest_rank : WaitOf::every_rank));
    else
        show_time(planned.no_time ? tr("No step time: %1").arg(reason(*planned.no_time)) : QString());
    show_remedies({});
    show_notes(planned.plan->warnings);
    restyle();
}

void VerdictPanel::show_error(const Error& error) {
    shows_error_ = true;
    verdict_ = Verdict::does_not_fit;
    headline_->setText(error.code() == ErrorCode::not_supported ? tr("Not modelled by this version")
                                                                : tr("This configuration can't be planned"));
    details_->setText(sentence(error));
    headline_->setToolTip({});
    details_->setToolTip({});
    show_time({});
    show_remedies({});
    show_difference({});
    notes_->hide();
    restyle();
}

void VerdictPanel::show_time(const QString& sentence) {
    say(*time_, sentence);
}

void VerdictPanel::show_remedies(const QString& sentence) {
    say(*remedies_, sentence);
}

void VerdictPanel::show_difference(const QString& sentence) {
    say(*difference_, sentence);
}

void VerdictPanel::say(QLabel& label, const QString& sentence) {
    label.setText(sentence);
    label.setVisible(!sentence.isEmpty());
    take_height();
}

// At once: the events that do it by themselves take a round for each layout on the way, and who draws the
// window in between cuts the text off.
void VerdictPanel::take_height() {
    layout()->activate();
    if (parentWidget() != nullptr && parentWidget()->layout() != nullptr)
        parentWidget()->layout()->activate();
}

QString VerdictPanel::plain_text() const {
    QStringList lines;
    for (const QString& line : {headline(), details(), time(), remedies(), difference()})
        if (!line.isEmpty()) lines << line;
    return lines.join('\n');
}

void VerdictPanel::show_notes(const std::vector<Warning>& warnings) {
    notes_->setVisible(!warnings.empty());
    if (warnings.empty()) return take_height();
    QStringList all;
    for (const Warning& warning : warnings) all << "• " + text(warning.message);
    notes_->set_whole_text(
        warnings.size() == 1 ? tr("Note: %1").arg(text(warnings.front().message))
                             : tr("%1 notes: %2 …").arg(warnings.size()).arg(text(warnings.front().message)));
    notes_->setToolTip(all.join('\n'));
    take_height();
}

void VerdictPanel::restyle() {
    restyling_ = true;
    const bool dark = is_dark(QApplication::palette());
    const QColor colour = verdict_colour(verdict_, dark);
    icon_->setPixmap(verdict_icon(verdict_, colour, devicePixelRatioF()));
    // Only what differs is set, so that the rest follows the application's palette.
    const QColor base = QApplication::palette().color(QPalette::Base);
    const auto tint = [](int ground, int ink) { return (ground * 9 + ink) / 10; };
    QPalette tinted;
    tinted.setColor(QPalette::Window,
                    QColor(tint(base.red(), colour.red()), tint(base.green(), colour.green()),
                           tint(base.blue(), colour.blue())));
    setPalette(tinted);
    QPalette inked;
    inked.setColor(QPalette::WindowText, colour);
    headline_->setPalette(inked);
    setAccessibleName(headline_->text());
    setAccessibleDescription(details_->text() + '\n' + time_->text());
    restyling_ = false;
}

void VerdictPanel::changeEvent(QEvent* event) {
    QFrame::changeEvent(event);
    const bool recoloured =
        event->type() == QEvent::PaletteChange || event->type() == QEvent::ApplicationPaletteChange;
    if (recoloured && !restyling_) restyle();
}

}  // namespace zeroplan::gui
