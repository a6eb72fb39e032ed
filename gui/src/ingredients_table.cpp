#include "zeroplan/gui/ingredients_table.hpp"

#include <QEvent>
#include <QHeaderView>
#include <QPainter>
#include <QScrollBar>

#include "zeroplan/gui/theme.hpp"

namespace zeroplan::gui {

namespace {

QPixmap swatch_pixmap(const QBrush& brush, const QColor& ground) {
    QPixmap pixmap(24, 24);
    pixmap.setDevicePixelRatio(2);
    pixmap.fill(ground);
    QPainter painter(&pixmap);
    painter.fillRect(QRectF(0, 0, 12, 12), brush);
    return pixmap;
}

constexpr int bytes_column = 1, share_column = 3, baseline_column = 4;

}  // namespace

IngredientsTable::IngredientsTable(QWidget* parent) : QTableWidget(parent) {
    setAccessibleName(tr("Ingredients of the peak"));
    setEditTriggers(QAbstractItemView::NoEditTriggers);
    setSelectionBehavior(QAbstractItemView::SelectRows);
    setShowGrid(false);
    setTabKeyNavigation(false);
    setWordWrap(false);
    setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
    verticalHeader()->hide();
    verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 4);
    verticalHeader()->setMinimumSectionSize(10);
    horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    horizontalHeader()->setHighlightSections(false);
}

void IngredientsTable::set_groups(const RankGroup& group, const RankGroup* baseline) {
    group_ = group;
    baseline_ = baseline != nullptr ? std::optional(*baseline) : std::nullopt;
    const MemoryStack now = memory_stack(group);
    const MemoryStack before = baseline != nullptr ? memory_stack(*baseline) : MemoryStack{};
    const auto old = [&](Bytes bytes) { return baseline != nullptr ? std::optional(bytes) : std::nullopt; };
    const auto relevant = [](Bytes a, Bytes b) { return a > Bytes{} || b > Bytes{}; };
    const bool dark = is_dark(palette());

    QStringList heading{tr("At the peak"), tr("Bytes"), tr("Size"), tr("Share")};
    if (baseline != nullptr) heading << tr("Baseline") << tr("Difference");
    clearContents();
    setRowCount(0);
    setColumnCount(static_cast<int>(heading.size()));
    setHorizontalHeaderLabels(heading);
    for (int column = 0; column < columnCount(); ++column)
        horizontalHeaderItem(column)->setTextAlignment(column == 0 ? Qt::AlignLeft | Qt::AlignVCenter
                                                                   : Qt::AlignRight | Qt::AlignVCenter);
    const Bytes whole = now.total();
    const Ingredient device{tr("device"), tr("What nvidia-smi shows: allocator and runtime"), Qt::NoBrush};
    const Ingredient runtime{
        tr("runtime"),
        tr("Driver context and NCCL's buffers, outside the allocator: a measured constant and "
           "NCCL's own formula"),
        runtime_colour(dark)};
    const Ingredient slack{
        tr("reserved only"),
        tr("Held by the allocator and not in use: rounding and holes, by replaying its rules"),
        reserved_brush(dark)};
    const Ingredient allocated{tr("allocated"), tr("What torch.cuda.max_memory_allocated() counts"),
                               Qt::NoBrush};
    add_row(device, whole, old(before.total()), whole);
    if (relevant(now.runtime, before.runtime)) add_row(runtime, now.runtime, old(before.runtime), whole);
    if (relevant(now.slack, before.slack)) add_row(slack, now.slack, old(before.slack), whole);
    add_row(allocated, now.allocated.total(), old(before.allocated.total()), whole);
    for (auto c = all_categories.rbegin(); c != all_categories.rend(); ++c)
        if (relevant(now.allocated[*c], before.allocated[*c]))
            add_row({label(*c), explain(*c), category_colour(*c, dark)}, now.allocated[*c],
                    old(before.allocated[*c]), whole);
    fit_width();
}

void IngredientsTable::set_compact(bool compact) {
    if (compact == compact_) return;
    compact_ = compact;
    if (group_) fit_width();
}

// With a baseline the sizes stand beside each other; every digit is in the tooltips and in the copied table.
void IngredientsTable::fit_width() {
    setColumnHidden(bytes_column, baseline_.has_value() || compact_);
    setColumnHidden(share_column, baseline_.has_value());
    if (baseline_) setColumnHidden(baseline_column, compact_);
    resizeColumnsToContents();
    int width = 2 * frameWidth() + verticalScrollBar()->sizeHint().width() + 2;
    for (int column = 0; column < columnCount(); ++column) width += columnWidth(column);
    setMinimumWidth(std::min(width, 440));
    setMaximumWidth(width);  // the ranks make better use of what is left
}

void IngredientsTable::add_row(const Ingredient& ingredient, Bytes bytes, std::optional<Bytes> before,
                               Bytes whole) {
    const bool sum = ingredient.swatch.style() == Qt::NoBrush;
    const QString share =
        QString::number(whole > Bytes{} ? 100 * bytes.gib() / whole.gib() : 0, 'f', 1) + " %";
    std::vector<Cell> cells{{ingredient.name, ingredient.name},
                            {text(format_count(bytes.count())), text(format_count(bytes.count()))},
                            {text(format_gib(bytes)), text(format_gib(bytes))},
                            {share, share}};
    if (before) {
        const Bytes change = bytes > *before ? bytes - *before : *before - bytes;
        const QString sign = bytes > *before ? "+" : bytes < *before ? "−" : "";
        cells.push_back({text(format_gib(*before)), text(format_count(before->count()))});
        cells.push_back({sign + text(format_gib(change)), sign + text(format_count(change.count()))});
    }
    const int row = rowCount();
    insertRow(row);
    for (int column = 0; column < static_cast<int>(cells.size()); ++column)
        setItem(row, column, make_item(cells[static_cast<std::size_t>(column)], column == 0, sum));
    item(row, 0)->setToolTip(ingredient.meaning);
    if (!sum) item(row, 0)->setIcon(swatch_pixmap(ingredient.swatch, palette().color(QPalette::Base)));
}

QTableWidgetItem* IngredientsTable::make_item(const Cell& cell, bool name, bool bold) const {
    auto* item = new QTableWidgetItem(cell.shown);
    item->setData(Qt::UserRole, cell.exact);
    if (cell.exact != cell.shown) item->setToolTip(cell.exact + " B");
    item->setTextAlignment((name ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    QFont item_font = font();
    item_font.setBold(bold);
    item->setFont(item_font);
    return item;
}

QString IngredientsTable::tab_separated() const {
    QStringList lines, cells;
    for (int column = 0; column < columnCount(); ++column) cells << horizontalHeaderItem(column)->text();
    lines << cells.join('\t');
    for (int row = 0; row < rowCount(); ++row) {
        cells.clear();
        for (int column = 0; column < columnCount(); ++column)
            cells << item(row, column)->data(Qt::UserRole).toString();
        lines << cells.join('\t');
    }
    return lines.join('\n') + '\n';
}

void IngredientsTable::changeEvent(QEvent* event) {
    QTableWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange && group_) {
        const RankGroup group = *group_;
        const auto baseline = baseline_;
        set_groups(group, baseline ? &*baseline : nullptr);
    }
}

}  // namespace zeroplan::gui
