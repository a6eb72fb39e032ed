#pragma once
#include <QTableWidget>

#include "zeroplan/gui/memory_stack.hpp"

namespace zeroplan::gui {

/// The legend with numbers: every ingredient of one rank group's peak with its colour, exact bytes, GiB and
/// share, and beside it a baseline's. Can be copied into a spreadsheet.
class IngredientsTable : public QTableWidget {
    Q_OBJECT
public:
    explicit IngredientsTable(QWidget* parent = nullptr);
    void set_groups(const RankGroup& group, const RankGroup* baseline);
    /// Leaves the exact bytes, and the baseline's sizes, to the tooltips and to what is copied.
    void set_compact(bool compact);
    /// Tab-separated, with a heading line.
    QString tab_separated() const;

protected:
    void changeEvent(QEvent* event) override;

private:
    struct Cell {
        QString shown, exact;  ///< what stands there, and with every digit
    };
    /// What a row is about: its name, what it means and rests on, its colour.
    struct Ingredient {
        QString name, meaning;
        QBrush swatch = Qt::NoBrush;
    };
    void add_row(const Ingredient& ingredient, Bytes bytes, std::optional<Bytes> before, Bytes whole);
    QTableWidgetItem* make_item(const Cell& cell, bool name, bool bold) const;
    void fit_width();

    std::optional<RankGroup> group_, baseline_;
    bool compact_ = false;
};

}  // namespace zeroplan::gui
