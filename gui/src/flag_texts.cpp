#include "zeroplan/gui/flag_texts.hpp"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <array>
#include <cmath>
#include <vector>

#include "zeroplan/gui/request.hpp"
#include "zeroplan/gui/text.hpp"

namespace zeroplan::gui {

namespace {

QJsonValue parsed(const std::string& json) {
    return QJsonDocument::fromJson('[' + QByteArray::fromStdString(json) + ']').array().at(0);
}

QString word(const QJsonValue& value) {
    return value.isDouble() ? QString::number(value.toDouble(), 'g', 15) : value.toString();
}

QString dimensions(const QJsonValue& value) {
    QStringList sizes;
    for (const QJsonValue& size : value.toArray()) sizes << word(size);
    return sizes.join('x');
}

std::vector<long long> whole_numbers(const QJsonArray& list) {
    std::vector<long long> all;
    for (const QJsonValue& value : list) all.push_back(value.toInteger());
    return all;
}

}  // namespace

QStringList factor_texts(const std::string& json) {
    const QJsonValue value = parsed(json);
    if (!value.isArray()) return number_texts(json);
    QStringList texts;
    for (const QJsonValue& entry : value.toArray()) {
        const QJsonObject object = entry.toObject();
        const QJsonValue who = object.value(QLatin1String(object.contains("rank") ? "rank" : "link"));
        texts << word(who) + '=' + word(object.value("factor"));
    }
    return texts;
}

QStringList fabric_texts(const std::string& json) {
    const QJsonValue value = parsed(json);
    if (!value.isObject()) return number_texts(json);
    const QJsonObject fabric = value.toObject();
    QString said = fabric.value("kind").toString().replace('_', '-');
    if (fabric.contains("dimensions")) said += ':' + dimensions(fabric.value("dimensions"));
    for (const char* key : {"link_bytes_per_second", "nodes_per_leaf", "leaf_oversubscription",
                            "leaves_per_pod", "pod_oversubscription"})
        if (fabric.contains(QLatin1String(key))) said += ':' + word(fabric.value(QLatin1String(key)));
    return {said};
}

QStringList placement_texts(const std::string& json) {
    const QJsonValue value = parsed(json);
    if (!value.isArray()) return number_texts(json);
    const std::vector<long long> nodes = whole_numbers(value.toArray());
    QStringList spans;
    for (std::size_t first = 0; first < nodes.size();) {
        std::size_t last = first;
        while (last + 1 < nodes.size() && nodes[last + 1] == nodes[last] + 1) ++last;
        spans << QString::number(nodes[first]) +
                     (last > first ? '-' + QString::number(nodes[last]) : QString());
        first = last + 1;
    }
    return {spans.join(',')};
}

QStringList background_texts(const std::string& json) {
    const QJsonObject job = parsed(json).toObject();
    if (job.isEmpty()) return number_texts(json);
    return {job.value(QLatin1String(job.contains("file") ? "file" : "name")).toString()};
}

QStringList duration_texts(const std::string& json) {
    static constexpr std::array<std::pair<double, char>, 4> units{
        {{365 * 86400.0, 'y'}, {86400.0, 'd'}, {3600.0, 'h'}, {60.0, 'm'}}};
    const QJsonValue value = parsed(json);
    if (!value.isDouble()) return number_texts(json);
    const double seconds = value.toDouble();
    for (const auto& [size, letter] : units)
        if (seconds >= size && std::fmod(seconds, size) == 0)
            return {QString::number(seconds / size, 'g', 15) + letter};
    return number_texts(json);
}

QStringList number_texts(const std::string& json) {
    return {plain_value(json)};
}

}  // namespace zeroplan::gui
