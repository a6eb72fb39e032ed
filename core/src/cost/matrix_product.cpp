#include "cost/matrix_product.hpp"

#include <algorithm>
#include <cmath>

#include "cost/constants.hpp"

namespace zeroplan::cost {

double shape_efficiency(const ProductShape& shape, const Constants& constants) {
    const double tile = constants.product_tile.value;
    const auto used = [tile](double size) { return size / (std::ceil(size / tile) * tile); };
    const double fill = constants.product_fill_depth.value;
    return used(shape.rows) * used(shape.columns) * shape.depth / (shape.depth + fill);
}

double newton_schulz_flops(double rows, double columns) {
    const double m = std::min(rows, columns), n = std::max(rows, columns);
    return 4 * m * m * n + 2 * m * m * m;
}

double newton_schulz_effective_flops(double rows, double columns, const Constants& constants) {
    const double m = std::min(rows, columns), n = std::max(rows, columns);
    const auto product = [&](const ProductShape& shape) {
        return 2 * shape.rows * shape.columns * shape.depth / shape_efficiency(shape, constants);
    };
    return product({m, m, n}) + product({m, m, m}) + product({m, n, m});
}

double fp8_cast_bytes(std::string_view fp8_json) {
    constexpr double read = 2, written = 1, both_ways = 2, block = 32;
    const auto recipe = [&](std::string_view name) { return fp8_json.find(name) != std::string_view::npos; };
    if (recipe("\"delayed\"")) return read + both_ways * written;
    if (recipe("\"rowwise\"")) return both_ways * (2 * read + written);
    if (recipe("\"mxfp8\"")) return both_ways * (read + written + 1 / block);
    return 2 * read + both_ways * written;
}

}  // namespace zeroplan::cost
