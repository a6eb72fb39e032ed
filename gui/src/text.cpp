#include "zeroplan/gui/text.hpp"

#include <QStringList>
#include <cmath>

namespace zeroplan::gui {

QString as_sentence(QString words) {
    if (words.isEmpty()) return words;
    // A word that is a key, a flag or the command keeps its case.
    const QString first = words.section(' ', 0, 0);
    if (!first.contains('_') && !first.contains('-') && first != "zeroplan") words[0] = words[0].toUpper();
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

QString explain(Category category) {
    switch (category) {
        case Category::parameters:
            return QObject::tr("Weights that stay on the rank, by the engine's sharding, exact to the byte");
        case Category::gradients:
            return QObject::tr("Gradients that wait for the optimizer, by the engine's sharding");
        case Category::master_weights:
            return QObject::tr("The fp32 copy that the optimizer updates, of what the rank owns");
        case Category::optimizer_states:
            return QObject::tr("What the optimizer keeps of every element that the rank owns");
        case Category::gathered_parameters:
            return QObject::tr("Whole weights, gathered from the ranks while a module needs them");
        case Category::communication_buffers:
            return QObject::tr(
                "Buckets and flat buffers that collectives read or write, by the engine's rules");
        case Category::activations:
            return QObject::tr("Tensors that forward saves for backward, operator by operator");
        case Category::logits:
            return QObject::tr("Scores of the output layer and what the loss makes of them");
        case Category::temporaries:
            return QObject::tr("What lives for one operation: workspaces, casts, partial results");
    }
    return {};
}

QString sentence(const Error& error) {
    QString said;
    if (!error.place().file.empty()) said += text(error.place().file) + ": ";
    if (!error.place().pointer.empty()) said += text(error.place().pointer) + ": ";
    return said + reason(error);
}

QString reason(const Error& error) {
    return as_sentence(text(error.message())) +
           (error.hint().empty() ? "" : ' ' + as_sentence(text(error.hint())));
}

QString signed_difference(Bytes now, Bytes before) {
    if (now == before) return QObject::tr("the same");
    return (now > before ? "+" : "−") + text(format_gib(now > before ? now - before : before - now));
}

QString percent(double share) {
    return QString::number(100 * share, 'f', std::abs(share) < 0.0995 ? 1 : 0) + " %";
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
