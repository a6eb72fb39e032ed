#include "zeroplan/gui/scenario_form.hpp"

#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QToolButton>
#include <algorithm>
#include <bit>
#include <cmath>

#include "zeroplan/gui/request.hpp"
#include "zeroplan/gui/text.hpp"
#include "zeroplan/gui/theme.hpp"

namespace zeroplan::gui {

namespace {

// Sliders go over powers of two, up to what people do; the box beside takes any number.
int slider_end(const Field& field) {
    if (field.pointer == "/cluster/gpus_used") return 14;
    return field.pointer == "/cluster/nodes" ? 11 : 8;
}

int nearest_power(int value) {
    return static_cast<int>(std::lround(std::log2(std::max(1, value))));
}

QString preset_summary(const Field& field, const QString& name) {
    const auto presets = field.kind == Field::Kind::model ? model_presets() : topology_presets();
    for (const Preset& preset : presets)
        if (text(preset.name) == name) return text(preset.summary);
    return {};
}

// "llama/config.json": config.json alone says nothing.
QString short_name(const QString& path) {
    const QFileInfo file(path);
    return path.contains('/') ? file.dir().dirName() + '/' + file.fileName() : path;
}

QLabel* section_heading(const QString& name) {
    auto* heading = new QLabel(name);
    QFont bold = heading->font();
    bold.setBold(true);
    heading->setFont(bold);
    heading->setContentsMargins(0, 6, 0, 0);
    return heading;
}

// A request without a file has no text that its settings don't tell.
bool is_file_based(const ScenarioRequest& request) {
    return !request.file.empty() || !request.text.empty();
}

std::optional<std::string> setting_of(const Field& field, const QString& value) {
    return value.isEmpty() ? std::nullopt : std::optional(as_setting(field, value).json_value);
}

// The keys without a control that one of them decides.
const Field* guilty_field(const QString& place) {
    if (place.isEmpty()) return nullptr;
    const auto is_at = [&](const QString& pointer) {
        return place == pointer || place.startsWith(pointer + '/');
    };
    for (const Field& field : fields())
        if (is_at(text(field.pointer)) || place.startsWith(field.name()) || place == text(field.flag))
            return &field;
    if (is_at("/training/data_parallel")) return &field("/cluster/gpus_used");
    return nullptr;
}

}  // namespace

void DoublingSpinBox::stepBy(int steps) {
    long long wanted = value();
    for (; steps > 0; --steps) wanted = std::min<long long>(wanted * 2, maximum());
    for (; steps < 0; ++steps) wanted = std::max<long long>(wanted / 2, minimum());
    setValue(static_cast<int>(wanted));
}

Paragraph::Paragraph(QWidget* parent) : QLabel(parent) {
    setWordWrap(true);
    setTextFormat(Qt::PlainText);
    setTextInteractionFlags(Qt::TextSelectableByMouse);
}

void Paragraph::say(const QString& text) {
    setText(text);
    setFixedHeight(std::max(0, heightForWidth(width())));
}

void Paragraph::resizeEvent(QResizeEvent* event) {
    QLabel::resizeEvent(event);
    setFixedHeight(std::max(0, heightForWidth(width())));
}

ScenarioForm::ScenarioForm(QWidget* parent) : QWidget(parent), layout_(new QFormLayout(this)) {
    layout_->setContentsMargins(8, 2, 8, 6);
    layout_->setVerticalSpacing(4);
    layout_->setHorizontalSpacing(8);
    layout_->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    layout_->setLabelAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    for (const Field& field : fields()) {
        if (!field.section.isEmpty()) layout_->addRow(section_heading(field.section));
        Row row;
        row.line = make_control(field, row);
        row.label = new QLabel(field.label);
        row.label->setToolTip(field.tooltip);
        layout_->addRow(row.label, row.line);
        row.error = new Paragraph;
        layout_->addRow(row.error);
        layout_->setRowVisible(row.error, false);
        rows_.emplace(field.pointer, row);
        row.label->setBuddy(control(field.pointer));
    }
}

QWidget* ScenarioForm::make_control(const Field& field, Row& row) {
    switch (field.kind) {
        case Field::Kind::count:
            return make_spin(field, row);
        case Field::Kind::text:
            return make_line_edit(field, row);
        case Field::Kind::model:
        case Field::Kind::topology:
        case Field::Kind::choice:
            break;
    }
    return make_combo(field, row);
}

QWidget* ScenarioForm::make_line_edit(const Field& field, Row& row) {
    row.line_edit = new QLineEdit;
    row.line_edit->setToolTip(field.tooltip);
    row.line_edit->setAccessibleName(field.name());
    row.line_edit->setPlaceholderText(field.example);
    // When it is finished, not at every letter: half of a text means nothing.
    connect(row.line_edit, &QLineEdit::editingFinished, this, [this, &field, edit = row.line_edit] {
        if (edit->isModified()) Q_EMIT edited(field.pointer, edit->text().trimmed(), false);
        edit->setModified(false);
    });
    return field.takes_file ? with_browse(field, row.line_edit) : row.line_edit;
}

QWidget* ScenarioForm::make_combo(const Field& field, Row& row) {
    row.combo = new QComboBox;
    row.combo->setToolTip(field.tooltip);
    row.combo->setAccessibleName(field.name());
    row.combo->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    row.combo->setMinimumContentsLength(12);
    row.combo->setMaxVisibleItems(24);
    for (std::size_t i = 0; i < field.choices.size(); ++i) {
        const bool spoken = i < field.choice_labels.size();
        row.combo->addItem(spoken ? field.choice_labels[i] : field.choices[i], field.choices[i]);
        if (field.kind != Field::Kind::choice)
            row.combo->setItemData(static_cast<int>(i), preset_summary(field, field.choices[i]),
                                   Qt::ToolTipRole);
    }
    connect(row.combo, &QComboBox::currentIndexChanged, this, [this, &field, combo = row.combo](int index) {
        if (!showing_ && index >= 0) Q_EMIT edited(field.pointer, combo->itemData(index).toString(), false);
    });
    return field.kind == Field::Kind::choice ? row.combo : with_browse(field, row.combo);
}

QWidget* ScenarioForm::with_browse(const Field& field, QWidget* control) {
    auto* browse = new QToolButton;
    browse->setText("…");
    browse->setToolTip(tr("Choose a file"));
    browse->setAccessibleName(tr("Choose a file for %1").arg(field.name()));
    connect(browse, &QToolButton::clicked, this, [this, &field] { choose_file(field); });
    auto* pair = new QWidget;
    auto* line = new QHBoxLayout(pair);
    line->setContentsMargins(0, 0, 0, 0);
    line->setSpacing(4);
    line->addWidget(control, 1);
    line->addWidget(browse);
    return pair;
}

QWidget* ScenarioForm::make_spin(const Field& field, Row& row) {
    row.spin = field.pointer == "/training/gradient_accumulation_steps" ? new QSpinBox : new DoublingSpinBox;
    row.spin->setRange(field.least, field.most);
    row.spin->setToolTip(field.tooltip);
    row.spin->setAccessibleName(field.name());
    row.spin->setGroupSeparatorShown(true);
    row.spin->setMinimumWidth(row.spin->fontMetrics().horizontalAdvance("131,072") + 36);
    connect(row.spin, &QSpinBox::valueChanged, this, [this, &field](int value) {
        if (!showing_) Q_EMIT edited(field.pointer, QString::number(value), true);
    });
    connect(row.spin, &QSpinBox::editingFinished, this, &ScenarioForm::settled);
    if (!field.slider) return row.spin;

    auto* pair = new QWidget;
    auto* line = new QHBoxLayout(pair);
    line->setContentsMargins(0, 0, 0, 0);
    line->setSpacing(6);
    line->addWidget(row.spin);
    line->addWidget(make_slider(field, row), 1);
    return pair;
}

QSlider* ScenarioForm::make_slider(const Field& field, Row& row) {
    row.slider = new QSlider(Qt::Horizontal);
    row.slider->setRange(0, slider_end(field));
    row.slider->setPageStep(1);
    row.slider->setMinimumWidth(70);
    row.slider->setToolTip(field.tooltip);
    row.slider->setAccessibleName(tr("%1, powers of two").arg(field.name()));
    connect(row.slider, &QSlider::valueChanged, this, [this, &field](int power) {
        if (!showing_) Q_EMIT edited(field.pointer, QString::number(1 << power), true);
    });
    connect(row.slider, &QSlider::sliderReleased, this, &ScenarioForm::settled);
    return row.slider;
}

void ScenarioForm::choose_file(const Field& field) {
    const bool model = field.kind == Field::Kind::model, text = field.kind == Field::Kind::text;
    const QString path =
        QFileDialog::getOpenFileName(this,
                                     model  ? tr("Model: config.json or safetensors")
                                     : text ? tr("Scenario of a second job")
                                            : tr("Topology file"),
                                     {},
                                     model  ? tr("Models (*.json *.safetensors);;All files (*)")
                                     : text ? tr("Scenarios (*.json);;All files (*)")
                                            : tr("Topologies (*.json);;All files (*)"));
    if (!path.isEmpty()) Q_EMIT edited(field.pointer, path, false);
}

void ScenarioForm::show_request(const ScenarioRequest& request, const Scenario* resolved,
                                const WhatIf* what_if) {
    showing_ = true;
    for (const Field& field : fields()) {
        if (field.kind == Field::Kind::text) {
            show_text(field, request, what_if);
            continue;
        }
        const auto setting = setting_at(request, field.pointer);
        if (setting)
            show_value(field, field.kind == Field::Kind::model ? model_name_or_path(*setting)
                                                               : plain_value(*setting));
        else if (resolved != nullptr)
            show_value(field, field.value(*resolved));
    }
    show_rows();
    showing_ = false;
}

// What means the same as the request is left as it was typed: 90m stays 90m.
void ScenarioForm::show_text(const Field& field, const ScenarioRequest& request, const WhatIf* what_if) {
    QLineEdit& edit = *rows_.at(field.pointer).line_edit;
    const bool known = what_if != nullptr || setting_at(request, field.pointer) || !is_file_based(request);
    if (!known || (edit.hasFocus() && edit.isModified())) return;
    const auto setting = setting_at(request, field.pointer);
    if (setting && setting_of(field, edit.text()) == setting) return;
    edit.setText(shown_text(field, request, what_if));
    edit.setModified(false);
    edit.setCursorPosition(0);
}

void ScenarioForm::show_rows() {
    const QString engine = rows_.at("/training/engine").combo->currentData().toString();
    for (const Field& field : fields()) {
        if (field.engines.empty()) continue;
        const Row& row = rows_.at(field.pointer);
        layout_->setRowVisible(row.line, is_shown(field, engine, QString::number(row.spin->value())));
    }
}

void ScenarioForm::show_value(const Field& field, const QString& value) {
    const Row& row = rows_.at(field.pointer);
    if (row.combo != nullptr) {
        int index = row.combo->findData(value);
        if (index < 0) {  // a file, or a word that the menu leaves out
            row.combo->addItem(value.isEmpty() ? tr("as in the scenario") : short_name(value), value);
            index = row.combo->count() - 1;
            row.combo->setItemData(index, value, Qt::ToolTipRole);
        }
        row.combo->setCurrentIndex(index);
        return;
    }
    const int number = value.toInt();
    if (row.spin->value() != number) row.spin->setValue(number);
    if (row.slider != nullptr && !row.slider->isSliderDown()) row.slider->setValue(nearest_power(number));
}

// Whatever is wrong in a second job's file, this job's controls of the same keys are not about it.
const Field* ScenarioForm::guilty_file(const QString& path) const {
    if (path.isEmpty()) return nullptr;
    for (const Field& field : fields())
        if (field.takes_file && QFileInfo(rows_.at(field.pointer).line_edit->text()) == QFileInfo(path))
            return &field;
    return nullptr;
}

bool ScenarioForm::mark_error(const Error* error) {
    const Field* guilty = error != nullptr ? guilty_file(text(error->place().file)) : nullptr;
    if (error != nullptr && guilty == nullptr) guilty = guilty_field(text(error->place().pointer));
    for (const Field& field : fields()) {
        const Row& row = rows_.at(field.pointer);
        const bool here = &field == guilty;
        QPalette palette;
        if (here)
            palette.setColor(QPalette::WindowText,
                             verdict_colour(Verdict::does_not_fit, is_dark(this->palette())));
        row.label->setPalette(palette);
        row.error->setPalette(palette);
        row.error->say(here ? reason(*error) : QString());
        layout_->setRowVisible(row.error, here);
        control(field.pointer)->setAccessibleDescription(row.error->text());
    }
    return guilty != nullptr;
}

QString ScenarioForm::error_at(const std::string& pointer) const {
    return rows_.at(pointer).error->text();
}

QWidget* ScenarioForm::control(const std::string& pointer) const {
    const Row& row = rows_.at(pointer);
    if (row.line_edit != nullptr) return row.line_edit;
    return row.combo != nullptr ? static_cast<QWidget*>(row.combo) : row.spin;
}

QSlider* ScenarioForm::slider(const std::string& pointer) const {
    return rows_.at(pointer).slider;
}

}  // namespace zeroplan::gui
