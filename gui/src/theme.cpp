#include "zeroplan/gui/theme.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace zeroplan::gui {

namespace {

struct ColourPair {
    QRgb on_light, on_dark;
    QColor pick(bool dark) const { return QColor(dark ? on_dark : on_light); }
};

constexpr std::array<ColourPair, category_count> category_pairs{{
    {0x332288, 0x8078d8},  // parameters
    {0xddcc77, 0xddcc77},  // gradients
    {0x117733, 0x2f9e58},  // master_weights
    {0x88ccee, 0x88ccee},  // optimizer_states
    {0xaa4499, 0xc86bb8},  // gathered_parameters
    {0x999933, 0xa8a83c},  // communication_buffers
    {0x44aa99, 0x44aa99},  // activations
    {0xcc6677, 0xdd7788},  // logits
    {0x882255, 0xb8487e},  // temporaries
}};

constexpr ColourPair forward_pair{0x44aa99, 0x44aa99};
constexpr ColourPair recompute_pair{0xddcc77, 0xddcc77};
constexpr ColourPair backward_pair{0x332288, 0x8078d8};
constexpr ColourPair optimizer_pair{0x117733, 0x2f9e58};
constexpr ColourPair gather_pair{0xaa4499, 0xc86bb8};
constexpr ColourPair reduce_pair{0x999933, 0xa8a83c};
constexpr ColourPair other_pair{0x777777, 0x999999};

QPalette palette_of(QRgb window, QRgb base, QRgb alternate, QRgb button, QRgb ink, QRgb faint, QRgb accent) {
    QPalette p{QColor(button), QColor(window)};
    const auto set = [&](QPalette::ColorRole role, QRgb colour) { p.setColor(role, QColor(colour)); };
    set(QPalette::Base, base);
    set(QPalette::AlternateBase, alternate);
    set(QPalette::WindowText, ink);
    set(QPalette::Text, ink);
    set(QPalette::ButtonText, ink);
    set(QPalette::ToolTipBase, alternate);
    set(QPalette::ToolTipText, ink);
    set(QPalette::PlaceholderText, faint);
    set(QPalette::Highlight, accent);
    set(QPalette::HighlightedText, 0xffffff);
    set(QPalette::Link, accent);
    for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
        p.setColor(QPalette::Disabled, role, QColor(faint));
    return p;
}

}  // namespace

QPalette light_palette() {
    return palette_of(0xf4f5f7, 0xffffff, 0xeef0f3, 0xe9ebee, 0x1c1f23, 0x70757d, 0x2564c8);
}

QPalette dark_palette() {
    return palette_of(0x202226, 0x17191c, 0x25282d, 0x32363c, 0xe6e7ea, 0x9096a0, 0x3d7fe0);
}

bool is_dark(const QPalette& palette) {
    return palette.color(QPalette::Text).lightness() > palette.color(QPalette::Base).lightness();
}

QColor category_colour(Category category, bool dark) {
    return category_pairs[static_cast<std::size_t>(category)].pick(dark);
}

QBrush reserved_brush(bool dark) {
    return {QColor(dark ? 0x8a8f98 : 0x8c9199), Qt::BDiagPattern};
}

QColor runtime_colour(bool dark) {
    return QColor(dark ? 0x5a5f68 : 0xbfc3c9);
}

QColor overflow_colour(bool dark) {
    return QColor(dark ? 0xff6b5e : 0xc4281c);
}

QColor verdict_colour(Verdict verdict, bool dark) {
    switch (verdict) {
        case Verdict::fits:
            return QColor(dark ? 0x4fc27a : 0x12733a);
        case Verdict::marginal:
            return QColor(dark ? 0xe8b13c : 0x8a5a00);
        case Verdict::does_not_fit:
            break;
    }
    return overflow_colour(dark);
}

QColor operation_colour(const Operation& operation, bool dark) {
    if (const auto* compute = std::get_if<Compute>(&operation.body)) {
        switch (compute->phase) {
            case ComputePhase::forward:
                return forward_pair.pick(dark);
            case ComputePhase::recompute:
                return recompute_pair.pick(dark);
            case ComputePhase::backward:
                return backward_pair.pick(dark);
        }
    }
    if (const auto* collective = std::get_if<Collective>(&operation.body)) {
        const bool gathers =
            collective->kind == CollectiveKind::all_gather || collective->kind == CollectiveKind::broadcast;
        return (gathers ? gather_pair : reduce_pair).pick(dark);
    }
    const bool steps = std::holds_alternative<OptimizerStep>(operation.body) ||
                       std::holds_alternative<HostStep>(operation.body);
    return (steps ? optimizer_pair : other_pair).pick(dark);
}

QColor group_colour(std::uint64_t group, bool dark) {
    constexpr std::array<QRgb, 9> light{0x77aadd, 0xee8866, 0xeedd88, 0xffaabb, 0x99ddff,
                                        0x44bb99, 0xbbcc33, 0xaaaa00, 0xdddddd};
    const QColor colour(light[group % light.size()]);
    return dark ? colour.darker(118) : colour;
}

QColor load_colour(double utilisation, bool dark) {
    const QColor idle(dark ? 0x7d838d : 0x9aa0a8), half(dark ? 0xe8b13c : 0xd9911c),
        full = overflow_colour(dark);
    const double at = std::clamp(utilisation, 0.0, 1.0);
    const QColor &from = at < 0.5 ? idle : half, &to = at < 0.5 ? half : full;
    const double t = at < 0.5 ? 2 * at : 2 * at - 1;
    const auto mix = [t](int a, int b) { return static_cast<int>(std::lround(a + t * (b - a))); };
    return {mix(from.red(), to.red()), mix(from.green(), to.green()), mix(from.blue(), to.blue())};
}

QColor ink_on(const QColor& ground) {
    // Relative luminance above which black has the higher WCAG contrast.
    const auto linear = [](float channel) {
        return static_cast<double>(channel) * static_cast<double>(channel);
    };
    const double luminance =
        0.2126 * linear(ground.redF()) + 0.7152 * linear(ground.greenF()) + 0.0722 * linear(ground.blueF());
    return luminance > 0.18 ? Qt::black : Qt::white;
}

}  // namespace zeroplan::gui
