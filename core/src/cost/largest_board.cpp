#include "cost/largest_board.hpp"

namespace zeroplan::cost {

Board largest_board(std::uint32_t compute_capability) {
    constexpr Board a100{400, 108}, b200{1000, 148};
    switch (compute_capability) {
        case 70:
            return {300, 80};
        case 75:
            return {280, 72};
        case 86:
            return {350, 84};
        case 89:
            return {450, 142};
        case 90:
            return {700, 132};
        case 120:
            return {575, 170};
        default:
            return compute_capability >= 100 ? b200 : a100;
    }
}

}  // namespace zeroplan::cost
