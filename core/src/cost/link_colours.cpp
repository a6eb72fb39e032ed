#include "cost/link_colours.hpp"

#include <algorithm>
#include <tuple>

namespace zeroplan {

std::uint32_t LinkColours::add(const Crossing& crossing) {
    const auto sender = static_cast<std::uint32_t>(by_sender_.size());
    Uses& uses = by_sender_.emplace_back();
    for (const auto& [link, units] : crossing) {
        const auto [place, is_new] = number_of_.try_emplace(link, static_cast<std::uint32_t>(links_.size()));
        if (is_new) {
            links_.push_back(link);
            by_link_.emplace_back();
        }
        uses.push_back({place->second, units});
        by_link_[place->second].push_back({sender, units});
    }
    return sender;
}

LinkColours::Key LinkColours::key(const Uses& uses, const Colours& colours) {
    Key result;
    for (const Use& use : uses) result.emplace_back(colours[use.other], use.units);
    std::sort(result.begin(), result.end());
    return result;
}

Colours LinkColours::of_senders(const Colours& senders) const {
    Numbering<std::tuple<double, double, Key>> of_links;
    Colours links;
    for (std::size_t i = 0; i < links_.size(); ++i) {
        const auto other = others_.find(links_[i]);
        links.push_back(
            of_links.number({routes_.bytes_per_s(links_[i]), other == others_.end() ? 0 : other->second,
                             key(by_link_[i], senders)}));
    }
    Numbering<Key> numbers;
    Colours result;
    for (const Uses& uses : by_sender_) result.push_back(numbers.number(key(uses, links)));
    return result;
}

}  // namespace zeroplan
