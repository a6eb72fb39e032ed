#pragma once
#include <QLabel>

namespace zeroplan::gui {

/// One line of text, cut with … where it doesn't fit; the tooltip has all of it unless it is told otherwise.
class ElidedLabel : public QLabel {
    Q_OBJECT
public:
    explicit ElidedLabel(QWidget* parent = nullptr);
    void set_whole_text(const QString& text);
    const QString& whole_text() const { return whole_; }

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void cut();

    QString whole_;
};

}  // namespace zeroplan::gui
