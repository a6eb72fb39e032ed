#pragma once
#include "cost/numbering.hpp"
#include "zeroplan/fabric_routes.hpp"

namespace zeroplan {

/// The links of a fabric that communicators and messages cross, for colour refinement: two links are alike if
/// the like of senders cross them in the same way, two senders if they cross the like of links.
class LinkColours {
public:
    LinkColours(const FabricRoutes& routes, const Crossing& others) : routes_(routes), others_(others) {}

    /// Returns the number of the sender.
    std::uint32_t add(const Crossing& crossing);
    std::size_t senders() const { return by_sender_.size(); }

    /// By sender: a number for the links that it crosses, where senders have these colours.
    Colours of_senders(const Colours& senders) const;

private:
    struct Use {
        std::uint32_t other = 0;  ///< sender of a link, or link of a sender
        double units = 0;
    };
    using Uses = std::vector<Use>;
    using Key = std::vector<std::pair<std::uint32_t, double>>;
    static Key key(const Uses& uses, const Colours& colours);

    const FabricRoutes& routes_;
    const Crossing& others_;
    std::map<std::uint64_t, std::uint32_t> number_of_;  ///< of links that are crossed
    std::vector<std::uint64_t> links_;
    std::vector<Uses> by_sender_, by_link_;
};

}  // namespace zeroplan
