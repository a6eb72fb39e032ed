#include "zeroplan/gui/rank_position.hpp"

#include <QObject>
#include <QStringList>
#include <algorithm>

namespace zeroplan::gui {

Degrees degrees_of(const Plan& plan) {
    const TrainingConfig& training = plan.scenario.training;
    Degrees degrees{training.tensor_parallel, training.context_parallel, training.data_parallel,
                    training.pipeline_parallel, 1};
    degrees.shard_group =
        std::clamp<std::uint64_t>(plan.layout.shard_group, 1, degrees.data * degrees.context);
    return degrees;
}

RankPosition rank_position(const Degrees& degrees, std::uint64_t rank) {
    RankPosition position;
    position.tensor = rank % degrees.tensor;
    position.tensor_group = rank / degrees.tensor;
    position.context = position.tensor_group % degrees.context;
    const std::uint64_t in_stage = position.tensor_group % (degrees.context * degrees.data);
    position.data = in_stage / degrees.context;
    position.replica = in_stage / degrees.shard_group;
    position.stage = position.tensor_group / (degrees.context * degrees.data);
    return position;
}

RankColour colour_by(const Degrees& degrees) {
    if (degrees.stages > 1) return RankColour::stage;
    if (degrees.replicas() > 1 && degrees.shard_group > 1) return RankColour::replica;
    return degrees.tensor > 1 && degrees.data * degrees.context > 1 ? RankColour::tensor_group
                                                                    : RankColour::all_alike;
}

std::uint64_t colour_of(const Degrees& degrees, std::uint64_t rank) {
    const RankPosition position = rank_position(degrees, rank);
    switch (colour_by(degrees)) {
        case RankColour::stage:
            return position.stage;
        case RankColour::replica:
            return position.replica;
        case RankColour::tensor_group:
            return position.tensor_group;
        case RankColour::all_alike:
            break;
    }
    return 0;
}

std::uint64_t colours(const Degrees& degrees) {
    return degrees.ranks() > 0 ? colour_of(degrees, degrees.ranks() - 1) + 1 : 1;
}

QString colour_name(const Degrees& degrees, std::uint64_t colour) {
    switch (colour_by(degrees)) {
        case RankColour::stage:
            return QObject::tr("stage %1").arg(colour);
        case RankColour::replica:
            return QObject::tr("replica %1").arg(colour);
        case RankColour::tensor_group:
            return QObject::tr("tensor group %1").arg(colour);
        case RankColour::all_alike:
            break;
    }
    if (degrees.tensor > 1) return QObject::tr("one tensor group of %1").arg(degrees.tensor);
    return degrees.shard_group > 1 ? QObject::tr("one shard group of %1").arg(degrees.shard_group)
                                   : QObject::tr("data-parallel ranks");
}

QStringList position_words(const Degrees& degrees, std::uint64_t rank) {
    const RankPosition position = rank_position(degrees, rank);
    QStringList words;
    const auto add = [&](const char* name, std::uint64_t at, std::uint64_t degree) {
        if (degree > 1) words << QString("%1 %2").arg(name).arg(at);
    };
    add("tp", position.tensor, degrees.tensor);
    add("cp", position.context, degrees.context);
    add("pp", position.stage, degrees.stages);
    add("dp", position.data, degrees.data);
    return words;
}

}  // namespace zeroplan::gui
