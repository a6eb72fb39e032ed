#pragma once
#include <QComboBox>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QSlider>
#include <QSpinBox>
#include <QWidget>
#include <map>

#include "zeroplan/gui/fields.hpp"

namespace zeroplan::gui {

/// Arrow keys double and halve: what is counted here comes in powers of two. Any number can be typed.
class DoublingSpinBox : public QSpinBox {
    Q_OBJECT
public:
    using QSpinBox::QSpinBox;
    void stepBy(int steps) override;
};

/// A paragraph of a fixed height that follows from its width: Qt 6.4's QFormLayout misplaces rows if one of
/// them is hidden while another trades height for width.
class Paragraph : public QLabel {
    Q_OBJECT
public:
    explicit Paragraph(QWidget* parent = nullptr);
    void say(const QString& text);
    bool hasHeightForWidth() const override { return false; }

protected:
    void resizeEvent(QResizeEvent* event) override;
};

/// The controls of fields(), each of which stands for one key of the scenario. The form keeps no state: it
/// tells what the user wants and shows what it is given.
class ScenarioForm : public QWidget {
    Q_OBJECT
public:
    explicit ScenarioForm(QWidget* parent = nullptr);

    /// Shows the request's settings, and for the rest what `resolved` says, or what was shown before if it is
    /// null; of the what-if likewise.
    void show_request(const ScenarioRequest& request, const Scenario* resolved,
                      const WhatIf* what_if = nullptr);
    /// Says below the control that an error is about what is wrong; nullptr: nothing is. False if no control
    /// is the error's place.
    bool mark_error(const Error* error);
    /// What stands below a control; "" if nothing does.
    QString error_at(const std::string& pointer) const;
    /// The control of a field, for tests and tab order: a QComboBox, a QSpinBox or a QLineEdit.
    QWidget* control(const std::string& pointer) const;
    QSlider* slider(const std::string& pointer) const;

Q_SIGNALS:
    /// `continuous`: more of the same may follow, as while a slider is dragged.
    void edited(const std::string& pointer, const QString& value, bool continuous);
    /// A series of edits is over.
    void settled();

private:
    struct Row {
        QLabel* label = nullptr;
        Paragraph* error = nullptr;
        QWidget* line = nullptr;  ///< the control with what stands beside it
        QComboBox* combo = nullptr;
        QSpinBox* spin = nullptr;
        QLineEdit* line_edit = nullptr;
        QSlider* slider = nullptr;
    };
    QWidget* make_control(const Field& field, Row& row);
    QWidget* make_combo(const Field& field, Row& row);
    QWidget* make_spin(const Field& field, Row& row);
    QWidget* make_line_edit(const Field& field, Row& row);
    QWidget* with_browse(const Field& field, QWidget* control);
    QSlider* make_slider(const Field& field, Row& row);
    void choose_file(const Field& field);
    void show_value(const Field& field, const QString& value);
    void show_text(const Field& field, const ScenarioRequest& request, const WhatIf* what_if);
    const Field* guilty_file(const QString& path) const;
    void show_rows();

    QFormLayout* layout_;
    std::map<std::string, Row> rows_;
    bool showing_ = false;  ///< values come from the window, not from the user
};

}  // namespace zeroplan::gui
