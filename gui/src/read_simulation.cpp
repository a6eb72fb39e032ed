#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <algorithm>
#include <optional>

#include "zeroplan/gui/simulation.hpp"

namespace zeroplan::gui {

namespace {

[[noreturn]] void refuse(const QString& what) {
    throw Error(ErrorCode::run_failed, "zeroplan-sim wrote " + what.toStdString(),
                "zeroplan-sim and zeroplan-gui must be of one version: build both anew.");
}

QJsonObject object(const QByteArray& json, const char* what) {
    QJsonParseError error{};
    const QJsonDocument document = QJsonDocument::fromJson(json, &error);
    if (!document.isObject())
        refuse(QObject::tr("a %1 that is no JSON object (%2)").arg(what, error.errorString()));
    return document.object();
}

double number(const QJsonObject& object, const char* key) {
    const QJsonValue value = object.value(QLatin1String(key));
    if (!value.isDouble()) refuse(QObject::tr("no number \"%1\"").arg(key));
    return value.toDouble();
}

StepTimeline figures(const QJsonObject& step) {
    StepTimeline timeline;
    timeline.step_time_s = number(step, "step_time_s");
    timeline.compute_s = number(step, "compute_s");
    timeline.slowed_s = step.value(QLatin1String("slowed_s")).toDouble();
    timeline.communication_s = number(step, "communication_s");
    timeline.exposed_communication_s = number(step, "exposed_communication_s");
    timeline.offload_s = step.value(QLatin1String("offload_s")).toDouble();  // absent in older reports
    timeline.exposed_offload_s = step.value(QLatin1String("exposed_offload_s")).toDouble();
    timeline.bubble_s = number(step, "bubble_s");
    return timeline;
}

std::vector<LinkLoad> link_loads(const QJsonArray& links) {
    std::vector<LinkLoad> loads;
    for (const QJsonValue& value : links) {
        const QJsonObject link = value.toObject();
        loads.push_back(
            {link.value("name").toString().toStdString(), static_cast<std::uint64_t>(number(link, "links")),
             number(link, "capacity_bytes_per_s"), number(link, "bytes"), number(link, "utilisation")});
    }
    return loads;
}

// "0-4,6"
std::vector<RankRange> ranges(const QString& ranks) {
    std::vector<RankRange> result;
    for (const QString& part : ranks.split(',', Qt::SkipEmptyParts))
        result.push_back({part.section('-', 0, 0).toULongLong(), part.section('-', -1).toULongLong()});
    return result;
}

WhatIfReport what_if_report(const QJsonObject& json) {
    WhatIfReport report;
    report.step_time_without_s = number(json, "step_time_without_s");
    for (const QJsonValue& value : json.value("causes").toArray()) {
        const QJsonObject cause = value.toObject();
        report.causes.push_back({cause.value("cause").toString().toStdString(), number(cause, "step_time_s"),
                                 number(cause, "added_s"), number(cause, "added_exposed_communication_s"),
                                 number(cause, "added_idle_s")});
    }
    if (const QJsonObject waited = json.value("waited_for").toObject(); !waited.isEmpty())
        report.waited_for = WaitedFor{
            ranges(waited.value("ranks").toString()), static_cast<std::uint64_t>(number(waited, "last_of")),
            static_cast<std::uint64_t>(number(waited, "collectives")), number(waited, "waiting_s")};
    if (const QJsonObject other = json.value("background").toObject(); !other.isEmpty()) {
        report.background = NeighbourJob{other.value("name").toString().toStdString(),
                                         static_cast<std::uint64_t>(number(other, "ranks")),
                                         number(other, "step_time_alone_s"), std::nullopt};
        if (other.value("step_time_s").isDouble())
            report.background->step_time_s = number(other, "step_time_s");
    }
    return report;
}

// Fields of one line of a CSV table; "a ""quoted"" field" may hold commas.
QList<QByteArray> csv_fields(const QByteArray& line) {
    if (!line.contains('"')) return line.split(',');
    QList<QByteArray> fields{{}};
    bool quoted = false;
    for (qsizetype i = 0; i < line.size(); ++i) {
        const bool doubled = quoted && i + 1 < line.size() && line[i] == '"' && line[i + 1] == '"';
        if (doubled)
            fields.back() += line[++i];
        else if (line[i] == '"')
            quoted = !quoted;
        else if (line[i] == ',' && !quoted)
            fields.append(QByteArray());
        else
            fields.back() += line[i];
    }
    return fields;
}

bool takes_time(const Operation& operation) {
    return !std::holds_alternative<Allocate>(operation.body) &&
           !std::holds_alternative<Free>(operation.body) &&
           !std::holds_alternative<LoadBatch>(operation.body) &&
           !std::holds_alternative<Wait>(operation.body);
}

// The table lists a group's operations in issue order, so the program tells which each row is.
class ProgramReader {
public:
    explicit ProgramReader(const StepProgram& program) : program_(program) {}

    TimedOperation next(const QByteArray& section, std::uint64_t iteration, const QByteArray& stream) {
        if (operation_ == 0 || iteration != iteration_ || section != name(section_))
            begin(section, iteration);
        const auto& operations = program_.step[section_].operations;
        while (operation_ < operations.size() && !takes_time(operations[operation_])) ++operation_;
        if (operation_ == operations.size() ||
            stream != QByteArray::fromStdString(std::string(to_string(operations[operation_].stream))))
            refuse(QObject::tr("operations that the plan does not have"));
        return {section_, iteration, operation_++, program_.step[section_].operations[operation_ - 1].stream,
                0,        0};
    }

private:
    QByteArray name(std::uint32_t section) const {
        return QByteArray::fromStdString(program_.step[section].name);
    }

    void begin(const QByteArray& section, std::uint64_t iteration) {
        // Sections come in the program's order.
        while (section_ < program_.step.size() && name(section_) != section) ++section_;
        if (section_ == program_.step.size())
            refuse(QObject::tr("an unknown section \"%1\"").arg(QString::fromUtf8(section)));
        iteration_ = iteration;
        operation_ = 0;
    }

    const StepProgram& program_;
    std::uint32_t section_ = 0;
    std::uint64_t iteration_ = 0;
    OperationId operation_ = 0;
};

void read_operations(const QByteArray& table, const Plan& plan, std::vector<StepTimeline>& timelines) {
    QByteArray ranks;
    std::size_t groups = 0;
    std::optional<ProgramReader> reader;
    const QList<QByteArray> lines = table.split('\n');
    for (qsizetype i = 1; i < lines.size(); ++i) {
        if (lines[i].isEmpty()) continue;
        const QList<QByteArray> fields = csv_fields(lines[i]);
        if (fields.size() != 8) refuse(QObject::tr("a table whose line %1 has not 8 fields").arg(i + 1));
        if (!reader || fields[0] != ranks) {
            if (groups == timelines.size()) refuse(QObject::tr("more rank groups than the plan has"));
            ranks = fields[0];
            reader.emplace(plan.programs.at(plan.rank_groups[groups++].program));
        }
        TimedOperation timed = reader->next(fields[1], fields[2].toULongLong(), fields[3]);
        timed.start_s = fields[5].toDouble();
        timed.end_s = fields[6].toDouble();
        timelines[groups - 1].operations.push_back(timed);
    }
    if (groups != timelines.size()) refuse(QObject::tr("operations of %1 rank groups only").arg(groups));
}

}  // namespace

namespace {

double rank_count(const RankGroup& group) {
    double count = 0;
    for (const RankRange& range : group.ranks) count += static_cast<double>(range.last - range.first + 1);
    return count;
}

}  // namespace

const StepTimeline* slowest_step(const Simulated& simulated) {
    const auto& groups = simulated.rank_groups;
    const auto slowest = std::max_element(
        groups.begin(), groups.end(),
        [](const StepTimeline& a, const StepTimeline& b) { return a.step_time_s < b.step_time_s; });
    return slowest == groups.end() ? nullptr : &*slowest;
}

std::optional<StepTimeline> slowest_step_with_mean_wait(const Simulated& simulated) {
    const StepTimeline* slowest = slowest_step(simulated);
    if (slowest == nullptr) return std::nullopt;
    StepTimeline step = *slowest;
    const auto mean = [&](double StepTimeline::*figure) {
        double sum = 0, ranks = 0;
        for (std::size_t g = 0; g < simulated.rank_groups.size(); ++g) {
            const auto count = rank_count(simulated.plan->rank_groups.at(g));
            sum += count * simulated.rank_groups[g].*figure;
            ranks += count;
        }
        return sum / ranks;
    };
    step.exposed_communication_s = mean(&StepTimeline::exposed_communication_s);
    step.bubble_s = mean(&StepTimeline::bubble_s);
    return step;
}

Simulated read_simulation(const QByteArray& report_json, const QByteArray& table,
                          std::shared_ptr<const Plan> plan) {
    const QJsonObject report = object(report_json, "report");
    Simulated result;
    result.throughput = {number(report, "tokens_per_s_per_gpu"), number(report, "model_flops_per_s_per_gpu"),
                         number(report, "mfu"), number(report, "hardware_flops_per_s_per_gpu"),
                         number(report, "hfu")};
    result.wall_s = number(report, "wall_s");
    result.links = link_loads(report.value("links").toArray());
    if (const QJsonObject what_if = report.value("what_if").toObject(); !what_if.isEmpty())
        result.what_if = what_if_report(what_if);
    for (const QJsonValue& step : report.value("step_times").toArray()) {
        result.rank_groups.push_back(figures(step.toObject()));
        result.rank_groups.back().fidelity = report.value("fidelity").toString().toStdString();
    }
    if (result.rank_groups.size() != plan->rank_groups.size())
        refuse(QObject::tr("%1 rank groups where the plan has %2")
                   .arg(result.rank_groups.size())
                   .arg(plan->rank_groups.size()));
    read_operations(table, *plan, result.rank_groups);
    const std::uint32_t fullest = plan->memory.worst_group;
    result.fullest = group_view(plan, fullest, &result.rank_groups.at(fullest));
    result.plan = std::move(plan);
    return result;
}

}  // namespace zeroplan::gui
