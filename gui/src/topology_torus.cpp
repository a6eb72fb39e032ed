#include <algorithm>

#include "topology_sketch.hpp"
#include "zeroplan/gui/text.hpp"

// A torus: its first two dimensions as columns and rows, what lies behind them as short lines to the side.
namespace zeroplan::gui {

namespace {

constexpr std::uint64_t most_rows = 4;
constexpr double between_rows = 0.9, wrap = 0.5, least_units = 6;  // units; two labels stand beside it
constexpr double widest_column = 130, between_columns = 16, wrap_width = 14;  // pixels

struct Extent {
    std::uint64_t columns = 1, rows = 1;  ///< drawn
    std::uint64_t all_columns = 1, all_rows = 1, layers = 1;

    Extent(const Topology& topology, double width) {
        const auto& sizes = fabric_of(topology.what_if).dimensions;
        all_columns = sizes.empty() ? 1 : sizes[0];
        all_rows = sizes.size() > 1 ? sizes[1] : 1;
        for (std::size_t i = 2; i < sizes.size(); ++i) layers *= sizes[i];
        const auto fit =
            static_cast<std::uint64_t>((width - 2 * wrap_width) / (least_small_node + between_columns));
        columns = std::min(all_columns, std::max<std::uint64_t>(2, fit));
        if (more_layers() && columns + 1 > fit && columns > 2) --columns;
        if (columns < all_columns) --columns;  // a column stands for the others
        rows = std::min(all_rows, most_rows);
        if (rows < all_rows) --rows;
    }
    bool more_columns() const { return columns < all_columns; }
    bool more_layers() const { return layers > 1; }
    bool more_rows() const { return rows < all_rows; }
    double drawn_rows() const { return static_cast<double>(rows + (more_rows() ? 1 : 0)); }
    double drawn_columns() const { return static_cast<double>(columns + (more_columns() ? 1 : 0)); }
    /// With the one that stands for what lies behind.
    double slots() const { return drawn_columns() + (more_layers() ? 1 : 0); }
    double units() const {
        return std::max(least_units,
                        drawn_rows() * (small_node_units + between_rows) - between_rows + 2 * wrap);
    }
};

class TorusPart {
public:
    TorusPart(const Sketch& sketch, double top)
        : sketch_(sketch), extent_(sketch.topology, sketch.width()), top_(top + wrap * sketch.unit) {
        column_ = std::min(widest_column, (sketch.width() - 2 * wrap_width) / extent_.slots());
        left_ = sketch.left + (sketch.width() - column_ * extent_.slots()) / 2;
    }

    QRectF draw() {
        QRectF own;
        draw_links();
        for (std::uint64_t row = 0; row < extent_.rows; ++row)
            for (std::uint64_t column = 0; column < extent_.columns; ++column)
                if (draw_small_node(sketch_, at(column, row), row * extent_.all_columns + column))
                    own = at(column, row);
        const QRectF more = draw_more();
        const double middle = top_ + (extent_.units() / 2 - wrap) * sketch_.unit;
        sketch_.label(LinkKind::nic, top_, middle);
        sketch_.label(LinkKind::torus, middle, top_ + (extent_.units() - wrap) * sketch_.unit);
        if (!own.isNull()) return own;
        return more.isNull() ? at(0, 0) : more;
    }

private:
    QRectF at(std::uint64_t column, std::uint64_t row) const {
        const double height = small_node_units * sketch_.unit;
        return {left_ + column_ * static_cast<double>(column) + between_columns / 2,
                top_ + static_cast<double>(row) * (height + between_rows * sketch_.unit),
                column_ - between_columns, height};
    }

    // To the right and below each node, and out of the last ones: there the torus closes.
    void draw_links() const {
        const double down = between_rows * sketch_.unit;
        const bool closes_rows = extent_.all_columns > 2, closes_columns = extent_.all_rows > 2;
        const auto columns = static_cast<std::uint64_t>(extent_.drawn_columns());
        const auto rows = static_cast<std::uint64_t>(extent_.drawn_rows());
        for (std::uint64_t row = 0; row < rows; ++row)
            for (std::uint64_t column = 0; column < columns; ++column) {
                const QRectF rect = at(column, row);
                const double x = rect.center().x(), y = rect.center().y();
                if (row < extent_.rows && (column + 1 < columns || closes_rows))
                    link({rect.right(), y}, {rect.right() + between_columns, y});
                if (row < extent_.rows && column == 0 && closes_rows)
                    link({rect.left() - between_columns / 2 - 4, y}, {rect.left(), y});
                if (column == extent_.columns) continue;  // what stands for the others is one box
                if (row + 1 < rows)
                    link({x, rect.bottom()}, {x, rect.bottom() + down});
                else if (closes_columns)
                    link({x, rect.bottom()}, {x, rect.bottom() + down / 2});
                if (row == 0 && closes_columns) link({x, rect.top() - down / 2}, {x, rect.top()});
                if (row < extent_.rows && extent_.layers > 1)
                    link(rect.topRight(), rect.topRight() + QPointF(7, -7));
            }
    }

    void link(QPointF from, QPointF to) const { sketch_.link(LinkKind::torus, from, to); }

    // Which box a node of the fabric is in; layers lie behind everything else.
    enum class Place : std::uint8_t { drawn, columns, rows, layers };
    Place place_of(std::uint64_t node) const {
        const std::uint64_t column = node % extent_.all_columns, row = node / extent_.all_columns;
        if (row >= extent_.all_rows) return Place::layers;
        if (row >= extent_.rows) return Place::rows;
        return column >= extent_.columns ? Place::columns : Place::drawn;
    }

    std::uint64_t slow_nodes_in(Place place) const {
        const std::vector<std::uint64_t> slow = slow_fabric_nodes(sketch_.topology);
        return static_cast<std::uint64_t>(std::count_if(
            slow.begin(), slow.end(), [&](std::uint64_t node) { return place_of(node) == place; }));
    }

    QRectF draw_more() const {
        QRectF last;
        const auto more = [&](const QRectF& rect, std::uint64_t count, const QString& what, Place place) {
            DrawnBox& box =
                sketch_.box(BoxRole::more, rect, QObject::tr("× %1").arg(text(format_count(count))));
            box.details = {what};
            box.slow = slow_nodes_in(place);
            last = rect;
        };
        if (extent_.more_columns()) {
            const QRectF whole = at(extent_.columns, 0) | at(extent_.columns, extent_.rows - 1);
            more(whole, extent_.all_columns - extent_.columns, QObject::tr("more"), Place::columns);
        }
        if (extent_.more_layers()) {
            const auto behind = static_cast<std::uint64_t>(extent_.drawn_columns());
            const QRectF whole = at(behind, 0) | at(behind, extent_.rows - 1);
            more(whole.adjusted(6, 0, 6, 0), extent_.layers - 1, QObject::tr("more layers"), Place::layers);
        }
        if (extent_.more_rows())
            more(at(0, extent_.rows) |
                     at(static_cast<std::uint64_t>(extent_.drawn_columns()) - 1, extent_.rows),
                 extent_.all_rows - extent_.rows, QObject::tr("more rows"), Place::rows);
        return last;
    }

    const Sketch& sketch_;
    Extent extent_;
    double top_, column_ = 0, left_ = 0;
};

}  // namespace

double torus_units(const Topology& topology, double width) {
    return Extent(topology, width).units();
}

QRectF draw_torus(const Sketch& sketch, double top) {
    return TorusPart(sketch, top).draw();
}

}  // namespace zeroplan::gui
