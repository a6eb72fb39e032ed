#pragma once
#include <QStringList>

#include "zeroplan/plan.hpp"

namespace zeroplan::gui {

/// Degrees of parallelism, all at least 1.
struct Degrees {
    std::uint64_t tensor = 1, context = 1, data = 1, stages = 1;
    std::uint64_t shard_group = 1;  ///< of data × context
    std::uint64_t ranks() const { return tensor * context * data * stages; }
    std::uint64_t replicas() const { return data * context / shard_group; }
    friend bool operator==(const Degrees&, const Degrees&) = default;
};
Degrees degrees_of(const Plan& plan);

/// Where a rank is in each. Ranks are numbered tensor, context, data, pipeline, as core's group_placement()
/// has it.
struct RankPosition {
    std::uint64_t tensor = 0, context = 0, data = 0, stage = 0;
    std::uint64_t replica = 0;       ///< of its shard group
    std::uint64_t tensor_group = 0;  ///< consecutive ranks
    friend bool operator==(const RankPosition&, const RankPosition&) = default;
};
RankPosition rank_position(const Degrees& degrees, std::uint64_t rank);

/// What ranks of one colour have in common in a drawing: the widest split that there is.
enum class RankColour : std::uint8_t { stage, replica, tensor_group, all_alike };
RankColour colour_by(const Degrees& degrees);
/// Number of the colour, from 0.
std::uint64_t colour_of(const Degrees& degrees, std::uint64_t rank);
std::uint64_t colours(const Degrees& degrees);
/// "stage 1", "replica 0", "tensor group 3", "shard group": what ranks of that colour are.
QString colour_name(const Degrees& degrees, std::uint64_t colour);

/// {"tp 3", "pp 1", "dp 0"}: the degrees above 1.
QStringList position_words(const Degrees& degrees, std::uint64_t rank);

}  // namespace zeroplan::gui
