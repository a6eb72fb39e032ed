#pragma once
#include <string_view>

namespace zeroplan::cost {

struct Constants;

/// rows × depth times depth × columns.
struct ProductShape {
    double rows = 1, columns = 1, depth = 1;
};

/// Share of a matrix library's sustained rate that a product of this shape reaches: the output is cut into
/// whole tiles, and every tile fills and drains its pipeline once over the depth.
double shape_efficiency(const ProductShape& shape, const Constants& constants);

/// Iterations by which Muon orthogonalises an update (ns_steps of Keller Jordan's Muon and torch.optim.Muon).
inline constexpr double newton_schulz_steps = 5;

/// Work of one such iteration on an m × n matrix, m ≤ n: X·Xᵀ, its square, and that times X.
double newton_schulz_flops(double rows, double columns);
/// The same as FLOPs at full efficiency, each product with that of its shape.
double newton_schulz_effective_flops(double rows, double columns, const Constants& constants);

/// Bytes that casting the operands of an fp8 product moves, per element of the operand, under the recipe that
/// `fp8_json` (training.fp8) names. It is written twice, as it stands and transposed, as fp8 products want
/// both operands by row.
///   tensorwise  the 16-bit value is read for the maximum, and to be cast
///   delayed     the maximum is an earlier one
///   rowwise     rows and columns have maxima of their own: all is read twice for each
///   mxfp8       blocks of 32 find theirs as they are cast, each way for itself, and have a scale byte
/// source: docs.pytorch.org/ao, float8 and mx_formats training; Transformer Engine, delayed scaling
double fp8_cast_bytes(std::string_view fp8_json);

}  // namespace zeroplan::cost
