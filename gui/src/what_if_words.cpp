#include "zeroplan/gui/what_if_words.hpp"

#include <algorithm>

#include "zeroplan/gui/text.hpp"

namespace zeroplan::gui {

namespace {

// Of the slowest rank group, as the command's report has it.
double step_time(const Planned& planned, const Simulated* simulated) {
    double longest = 0;
    if (simulated != nullptr)
        for (const StepTimeline& step : simulated->rank_groups) longest = std::max(longest, step.step_time_s);
    if (longest > 0) return longest;
    return planned.slowest ? planned.slowest->step_time_s : 0;
}

QString causes(const WhatIf& what_if) {
    QStringList lines;
    for (const Straggler& straggler : what_if.stragglers) lines << text(describe(straggler));
    for (const SlowLink& link : what_if.slow_links) lines << text(describe(link));
    if (const FabricSpec fabric = fabric_of(what_if); blocks(fabric))
        lines << text(describe(fabric, what_if.placement));
    if (what_if.background) lines << QObject::tr("%1 beside it").arg(text(what_if.background->name));
    for (QString& line : lines) line.prepend("  ");
    return lines.join('\n');
}

}  // namespace

bool slows_a_step(const WhatIf& what_if) {
    WhatIf other = what_if;
    other.failures.reset();
    return !other.empty();
}

QString what_if_words(const Planned& planned, const Simulated* simulated) {
    if (planned.what_if.empty())
        return QObject::tr(
            "Nothing is different from a cluster where all is well. Say what is under What if at the left: "
            "a slow rank or link, a fabric that blocks, a second job, failures.");
    SimExtras extras;
    if (simulated != nullptr) extras.what_if = simulated->what_if;
    extras.goodput = planned.goodput;
    const QString said = text(what_if_text(extras, step_time(planned, simulated))).trimmed();
    if (simulated != nullptr || !slows_a_step(planned.what_if)) return said;
    return QObject::tr("What if, not simulated yet\n%1").arg(causes(planned.what_if)) +
           (said.isEmpty() ? "" : "\n\n" + said);
}

QString what_if_sentence(const Planned& planned, const Simulated* simulated) {
    QStringList said;
    if (simulated != nullptr && simulated->what_if && !simulated->what_if->causes.empty())
        said << QObject::tr("Without the what-ifs %1.")
                    .arg(text(format_seconds(simulated->what_if->step_time_without_s)));
    if (planned.goodput) said << as_sentence(text(goodput_phrase(*planned.goodput)));
    return said.join(' ');
}

}  // namespace zeroplan::gui
