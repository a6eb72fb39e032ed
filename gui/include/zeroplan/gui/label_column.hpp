#pragma once
#include <optional>
#include <vector>

namespace zeroplan::gui {

/// Lines of text one above the other in [top, bottom] pixels, none on another.
class LabelColumn {
public:
    LabelColumn(double top, double bottom, double line_height);

    /// No text stands on a line drawn at `y`.
    void keep_free(double y);
    /// Top of a line of text about `middle`, or up to one line off; nothing if there is no room that near.
    std::optional<double> place(double middle);

private:
    struct Span {
        double from = 0, to = 0;
    };
    bool is_free(double from) const;

    double top_, bottom_, line_;
    std::vector<Span> taken_;
};

}  // namespace zeroplan::gui
