#include "zeroplan/gui/elided_label.hpp"

namespace zeroplan::gui {

ElidedLabel::ElidedLabel(QWidget* parent) : QLabel(parent) {
    setTextFormat(Qt::PlainText);
    setTextInteractionFlags(Qt::TextSelectableByMouse);
    setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
}

void ElidedLabel::set_whole_text(const QString& text) {
    whole_ = text;
    setToolTip(text);
    setAccessibleName(text);
    cut();
}

void ElidedLabel::resizeEvent(QResizeEvent* event) {
    QLabel::resizeEvent(event);
    cut();
}

void ElidedLabel::cut() {
    setText(fontMetrics().elidedText(QString(whole_).replace('\n', ' '), Qt::ElideRight, width()));
}

}  // namespace zeroplan::gui
