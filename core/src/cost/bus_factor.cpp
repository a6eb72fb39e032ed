#include "cost/bus_factor.hpp"

namespace zeroplan {

double bus_factor(CollectiveKind kind, std::uint64_t ranks) {
    if (ranks <= 1) return 0;
    const auto n = static_cast<double>(ranks);
    switch (kind) {
        case CollectiveKind::all_reduce:
            return 2 * (n - 1) / n;
        case CollectiveKind::all_gather:
        case CollectiveKind::reduce_scatter:
        case CollectiveKind::all_to_all:
            return (n - 1) / n;
        case CollectiveKind::broadcast:
            return 1;
    }
    return 1;
}

}  // namespace zeroplan
