#include "zeroplan/gui/verdict_panel.hpp"

#include <QApplication>
#include <QEvent>
#include <QGridLayout>
#include <QPainter>
#include <QPainterPath>

#include "zeroplan/gui/theme.hpp"

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

QString percent(double share) {
    return QString::number(100 * share, 'f', share < 0.0995 ? 1 : 0) + " %";
}

QLabel* text_label() {
    auto* label = new QLabel;
    label->setWordWrap(true);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    return label;
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
    return said + '.';
}

QString time_sentence(const StepTimeline& timeline, const Throughput& throughput, bool tokens) {
    QString said =
        QObject::tr("Step %1 (%2)").arg(text(format_seconds(timeline.step_time_s)), text(timeline.fidelity));
    said += QObject::tr(": %1 %2/s per GPU")
                .arg(text(format_count(static_cast<std::uint64_t>(throughput.tokens_per_s_per_gpu + 0.5))),
                     tokens ? QObject::tr("tokens") : QObject::tr("samples"));
    if (throughput.mfu > 0) said += QObject::tr(", MFU %1").arg(percent(throughput.mfu));
    if (timeline.step_time_s > 0)
        said += QObject::tr(", exposed communication %1, idle %2")
                    .arg(percent(timeline.exposed_communication_s / timeline.step_time_s),
                         percent(timeline.bubble_s / timeline.step_time_s));
    return said + '.';
}

VerdictPanel::VerdictPanel(QWidget* parent)
    : QFrame(parent),
      icon_(new QLabel),
      headline_(text_label()),
      details_(text_label()),
      time_(text_label()),
      notes_(new QLabel) {
    setObjectName("verdict");
    setFrameShape(QFrame::StyledPanel);
    setAutoFillBackground(true);
    auto* grid = new QGridLayout(this);
    grid->setContentsMargins(10, 6, 10, 6);
    grid->setHorizontalSpacing(10);
    grid->setVerticalSpacing(1);
    grid->addWidget(icon_, 0, 0, 4, 1, Qt::AlignTop);
    grid->addWidget(headline_, 0, 1);
    grid->addWidget(details_, 1, 1);
    grid->addWidget(time_, 2, 1);
    grid->addWidget(notes_, 3, 1);
    grid->setColumnStretch(1, 1);
    QFont large = font();
    large.setPointSizeF(large.pointSizeF() * 1.3);
    large.setBold(true);
    headline_->setFont(large);
    notes_->hide();
    time_->hide();
    restyle();
}

void VerdictPanel::show_plan(const Planned& planned) {
    shows_error_ = false;
    verdict_ = planned.plan->memory.verdict;
    headline_->setText(verdict_sentence(*planned.plan));
    details_->setText(peak_sentence(*planned.plan));
    const bool tokens = planned.plan->scenario.model.batch == BatchKind::tokens;
    if (planned.timeline && planned.throughput)
        show_time(time_sentence(*planned.timeline, *planned.throughput, tokens));
    else
        show_time(planned.no_time ? tr("No step time: %1").arg(sentence(*planned.no_time)) : QString());
    show_notes(planned.plan->warnings);
    restyle();
}

void VerdictPanel::show_error(const Error& error) {
    shows_error_ = true;
    verdict_ = Verdict::does_not_fit;
    headline_->setText(error.code() == ErrorCode::not_supported ? tr("Not modelled by this version")
                                                                : tr("This configuration can't be planned"));
    details_->setText(sentence(error));
    show_time({});
    notes_->hide();
    restyle();
}

void VerdictPanel::show_time(const QString& sentence) {
    time_->setText(sentence);
    time_->setVisible(!sentence.isEmpty());
}

void VerdictPanel::show_notes(const std::vector<Warning>& warnings) {
    notes_->setVisible(!warnings.empty());
    if (warnings.empty()) return;
    QStringList all;
    for (const Warning& warning : warnings) all << "• " + text(warning.message);
    notes_->setText(warnings.size() == 1
                        ? tr("Note: %1").arg(text(warnings.front().message))
                        : tr("%1 notes: %2 …").arg(warnings.size()).arg(text(warnings.front().message)));
    notes_->setToolTip(all.join('\n'));
    // One line, however long: the tooltip has the rest.
    notes_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
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
