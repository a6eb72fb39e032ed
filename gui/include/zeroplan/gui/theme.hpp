#pragma once
#include <QBrush>
#include <QColor>
#include <QPalette>

#include "zeroplan/category.hpp"
#include "zeroplan/plan.hpp"
#include "zeroplan/step_program.hpp"

namespace zeroplan::gui {

enum class ThemeChoice { system, light, dark };

QPalette light_palette();
QPalette dark_palette();
/// Whether text is lighter than what it stands on.
bool is_dark(const QPalette& palette);

/// Categories take Paul Tol's "muted" scheme, which stays distinct with the common colour-vision
/// deficiencies; its darkest members are lifted on dark ground. Neighbours in a stack are also divided by a
/// line, named in the table and on hover, so that no figure rests on colour alone.
QColor category_colour(Category category, bool dark);
/// Bytes the caching allocator holds beyond what is allocated: hatched, since nobody uses them.
QBrush reserved_brush(bool dark);
/// Context, NCCL and library workspaces, outside the allocator.
QColor runtime_colour(bool dark);
/// Bytes above the capacity, and the capacity line itself.
QColor overflow_colour(bool dark);
QColor verdict_colour(Verdict verdict, bool dark);
/// By what the operation does: forward, recompute, backward, optimizer, gathering, reducing.
QColor operation_colour(const Operation& operation, bool dark);
/// Ranks that belong together: Paul Tol's "light" scheme, made for grounds under text; again from the start
/// after the ninth.
QColor group_colour(std::uint64_t group, bool dark);
/// How busy a link is, from grey over amber to the colour of an overflow.
QColor load_colour(double utilisation, bool dark);
/// Black or white, whichever reads better on `ground`.
QColor ink_on(const QColor& ground);

}  // namespace zeroplan::gui
