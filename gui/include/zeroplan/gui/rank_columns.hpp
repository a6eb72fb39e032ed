#pragma once
#include <cstdint>
#include <vector>

#include "zeroplan/plan.hpp"

namespace zeroplan::gui {

/// One bar of the memory view: ranks first … last of one group, drawn from `x` on, `width` pixels wide, in a
/// slot that begins at `slot` and is `slot_width` wide.
struct RankColumn {
    double slot = 0, slot_width = 0, x = 0, width = 0;
    RankRange ranks;
    std::uint32_t group = 0;
    friend bool operator==(const RankColumn&, const RankColumn&) = default;
};

/// What one bar stands for, by the room there is.
enum class ColumnMode : std::uint8_t {
    rank,   ///< every rank has a bar
    group,  ///< every rank group has a bar: ranks in it are equal to the byte
    pixel   ///< too many groups for that: a pixel column shows its fullest rank; equal neighbours are joined
};

struct RankColumns {
    ColumnMode mode = ColumnMode::rank;
    std::vector<RankColumn> columns;
};

/// Never more columns than pixels, whatever the number of ranks.
RankColumns rank_columns(const Plan& plan, double left, double width);

}  // namespace zeroplan::gui
