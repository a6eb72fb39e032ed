#pragma once
#include <QColor>
#include <QObject>
#include <QString>
#include <optional>
#include <string_view>
#include <vector>

#include "zeroplan/category.hpp"
#include "zeroplan/error.hpp"
#include "zeroplan/units.hpp"

namespace zeroplan::gui {

/// Core speaks UTF-8.
QString text(std::string_view utf8);

/// A key of the reports in words: "steady_step" → "steady step", "micro_batch" → "micro-batch".
QString spoken(std::string_view key);

/// "79.11 GiB (84.94 GB)"
QString both_units(Bytes bytes);
/// "84,943,715,697 B"
QString exact(Bytes bytes);
/// a − b, or nothing where b is larger.
Bytes difference(Bytes a, Bytes b);
/// "master weights": the category's report key with its words apart.
QString label(Category category);
/// What the category's bytes are and what their count rests on.
QString explain(Category category);
/// With a capital at the beginning and a full stop at the end.
QString as_sentence(QString words);
/// The error's place, message and way out as one paragraph.
QString sentence(const Error& error);
/// The same without its place, for where one sees what it is about.
QString reason(const Error& error);
/// "+1.50 GiB", "−3.00 MiB", "the same" …
QString signed_difference(Bytes now, Bytes before);
/// "12 %", "1.5 %"
QString percent(double share);

/// What hovering shows and a screen reader reads: a heading, rows of label and value, a closing sentence.
struct Description {
    struct Row {
        QString label, value;
        std::optional<QColor> swatch;
    };
    QString heading;
    std::vector<Row> rows;
    QString closing;
};
/// One row a line, "label: value".
QString plain_text(const Description& description);
/// A small table with the values aligned at the right.
QString rich_text(const Description& description);

}  // namespace zeroplan::gui
