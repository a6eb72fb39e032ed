#pragma once

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

/// Bytes that casting the operands of an fp8 product moves, per element of the operand: the 16-bit value is
/// read (once more where its scale is its own maximum), and written in fp8 as it stands and transposed, as
/// Hopper's fp8 products want both operands by row.
double fp8_cast_bytes(bool delayed_scaling);

}  // namespace zeroplan::cost
