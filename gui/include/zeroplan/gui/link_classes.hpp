#pragma once
#include <optional>
#include <vector>

#include "zeroplan/gui/planner.hpp"
#include "zeroplan/gui/text.hpp"
#include "zeroplan/report.hpp"

namespace zeroplan::gui {

/// Links of a cluster that are alike, from the GPUs outwards.
enum class LinkKind : std::uint8_t { gpu, bridge, pcie, nic, leaf, pod, torus };

/// What is said of them.
struct LinkClass {
    LinkKind kind = LinkKind::gpu;
    QString name, rate;                 ///< "NVLink 4 over NVSwitch", "450 GB/s a GPU"
    std::optional<double> utilisation;  ///< of the fullest, after a simulation
    Description description;            ///< rates, load, and where the figures come from
};

/// The classes that the plan's cluster has, each of them with its load if a simulation tells.
std::vector<LinkClass> link_classes(const Planned& planned, const std::vector<LinkLoad>& loads);
const LinkClass* find_class(const std::vector<LinkClass>& classes, LinkKind kind);

/// "450 GB/s", "1.8 TB/s"
QString rate_words(double bytes_per_s);

}  // namespace zeroplan::gui
