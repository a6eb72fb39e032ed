#include "cost/matrix_product.hpp"

#include <cmath>

#include "cost/constants.hpp"

namespace zeroplan::cost {

double shape_efficiency(const ProductShape& shape, const Constants& constants) {
    const double tile = constants.product_tile.value;
    const auto used = [tile](double size) { return size / (std::ceil(size / tile) * tile); };
    const double fill = constants.product_fill_depth.value;
    return used(shape.rows) * used(shape.columns) * shape.depth / (shape.depth + fill);
}

double fp8_cast_bytes(bool delayed_scaling) {
    constexpr double read = 2, written = 2;
    return read + written + (delayed_scaling ? 0 : read);
}

}  // namespace zeroplan::cost
