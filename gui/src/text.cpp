#include "zeroplan/gui/text.hpp"

#include <QStringList>

namespace zeroplan::gui {

QString as_sentence(QString words) {
    if (words.isEmpty()) return words;
    // A word that is a key or a flag keeps its case.
    const QString first = words.section(' ', 0, 0);
    if (!first.contains('_') && !first.contains('-')) words[0] = words[0].toUpper();
    return words.endsWith('.') || words.endsWith('?') ? words : words + '.';
}

QString text(std::string_view utf8) {
    return QString::fromUtf8(utf8.data(), static_cast<qsizetype>(utf8.size()));
}

QString spoken(std::string_view key) {
    return text(key).replace("micro_batch", "micro-batch").replace('_', ' ');
}

QString both_units(Bytes bytes) {
    return text(format_bytes(bytes));
}

QString exact(Bytes bytes) {
    return text(format_exact(bytes));
}

Bytes difference(Bytes a, Bytes b) {
    return a > b ? a - b : Bytes{};
}

QString label(Category category) {
    return spoken(to_string(category));
}

QString sentence(const Error& error) {
    QString said;
    if (!error.place().file.empty()) said += text(error.place().file) + ": ";
    if (!error.place().pointer.empty()) said += text(error.place().pointer) + ": ";
    return said + as_sentence(text(error.message())) +
           (error.hint().empty() ? "" : ' ' + as_sentence(text(error.hint())));
}

QString plain_text(const Description& description) {
    QStringList lines{description.heading};
    for (const auto& row : description.rows) lines << row.label + ": " + row.value;
    if (!description.closing.isEmpty()) lines << description.closing;
    return lines.join('\n');
}

QString rich_text(const Description& description) {
    QString html = "<b>" + description.heading.toHtmlEscaped() + "</b><table cellspacing=0 cellpadding=1>";
    for (const auto& row : description.rows) {
        const QString swatch =
            row.swatch ? QString("<span style='color:%1'>■</span>").arg(row.swatch->name()) : QString();
        html += QString("<tr><td>%1&nbsp;</td><td>%2&nbsp;&nbsp;</td><td align=right>%3</td></tr>")
                    .arg(swatch, row.label.toHtmlEscaped(), row.value.toHtmlEscaped().replace(' ', "&nbsp;"));
    }
    return html + "</table>" + description.closing.toHtmlEscaped();
}

}  // namespace zeroplan::gui
