#include "sim/star_messages.hpp"

#include <map>
#include <set>

namespace zeroplan::test {
namespace {

class Builder {
public:
    explicit Builder(const StarMessages& star) : star_(star) {
        for (const std::uint64_t node : star.nodes) leaves_.insert(leaf_of(node));
        const auto rails = static_cast<double>(star.rails), nodes = static_cast<double>(star.nodes.size());
        chunk_bytes_ = star.cost.bytes / rails / static_cast<double>(star.chunks);
        // Of a message: the algorithm's is of the whole buffer.
        cap_bytes_per_s_ = star.cost.cap_bytes_per_s / rails;
        if (star.kind != CollectiveKind::all_gather) return;
        chunk_bytes_ /= nodes;
        cap_bytes_per_s_ *= (nodes - 1) / nodes;  // of which a NIC gets what the other nodes have
    }

    sim::StepGraph graph() {
        for (std::uint64_t rail = 0; rail < star_.rails; ++rail)
            for (std::uint64_t chunk = 0; chunk < star_.chunks; ++chunk)
                star_.kind == CollectiveKind::all_gather ? gather(rail) : reduce(rail);
        graph_.background = static_cast<std::uint32_t>(graph_.nodes.size());
        join();
        return std::move(graph_);
    }

private:
    enum class Link { nic_out, nic_in, leaf_up, leaf_down };
    using Message = std::uint32_t;
    using Messages = std::vector<Message>;

    std::uint64_t leaf_of(std::uint64_t node) const { return node / star_.nodes_per_leaf; }

    void reduce(std::uint64_t rail) {
        std::map<std::uint64_t, Messages> at_leaf;
        for (const std::uint64_t node : star_.nodes)
            at_leaf[leaf_of(node)].push_back(send(Link::nic_out, node, rail, {}));
        if (leaves_.size() > 1) {
            Messages at_spine;
            for (const auto& [leaf, arrived] : at_leaf)
                at_spine.push_back(send(Link::leaf_up, leaf, rail, arrived));
            for (auto& [leaf, arrived] : at_leaf) arrived = {send(Link::leaf_down, leaf, rail, at_spine)};
        }
        for (const std::uint64_t node : star_.nodes) send(Link::nic_in, node, rail, at_leaf[leaf_of(node)]);
    }

    void gather(std::uint64_t rail) {
        for (const std::uint64_t from : star_.nodes) {
            std::map<std::uint64_t, Message> at_leaf;
            at_leaf[leaf_of(from)] = send(Link::nic_out, from, rail, {});
            if (leaves_.size() > 1) {
                const Message at_spine = send(Link::leaf_up, leaf_of(from), rail, {at_leaf[leaf_of(from)]});
                for (const std::uint64_t leaf : leaves_)
                    if (leaf != leaf_of(from)) at_leaf[leaf] = send(Link::leaf_down, leaf, rail, {at_spine});
            }
            for (const std::uint64_t to : star_.nodes)
                if (to != from) send(Link::nic_in, to, rail, {at_leaf[leaf_of(to)]});
        }
    }

    Message send(Link kind, std::uint64_t number, std::uint64_t rail, Messages after) {
        const auto id = static_cast<Message>(graph_.nodes.size());
        const auto [last, is_first] = last_.try_emplace({kind, number, rail}, id);
        if (!is_first) {
            after.push_back(last->second);
            last->second = id;
        }
        graph_.nodes.push_back({.work = {},
                                .collective = flow(kind, number, rail),
                                .waits_for = static_cast<std::uint32_t>(after.size())});
        for (const Message before : after) edges_.emplace_back(before, id);
        return id;
    }

    std::uint32_t flow(Link kind, std::uint64_t number, std::uint64_t rail) {
        const auto next = static_cast<std::uint32_t>(graph_.flows.size());
        const auto [place, is_new] = flows_.try_emplace({kind, number, rail}, next);
        if (!is_new) return place->second;
        const bool of_leaf = kind == Link::leaf_up || kind == Link::leaf_down;
        sim::GraphFlow& added = graph_.flows.emplace_back();
        added.cost.bytes = added.cost.unit_bytes = chunk_bytes_;
        added.cost.cap_bytes_per_s = cap_bytes_per_s_;
        // Rails share the links of a leaf switch.
        const auto link = static_cast<std::uint32_t>(graph_.link_bytes_per_s.size());
        const auto [shared, is_new_link] = links_.try_emplace({kind, number, of_leaf ? 0 : rail}, link);
        if (is_new_link)
            graph_.link_bytes_per_s.push_back(of_leaf ? star_.leaf_bytes_per_s : star_.nic_bytes_per_s);
        added.links.push_back({shared->second, 1});
        return place->second;
    }

    void join() {
        std::vector<Messages> behind(graph_.nodes.size());
        for (const auto& [from, to] : edges_) behind[from].push_back(to);
        graph_.first_successor.push_back(0);
        for (const Messages& successors : behind) {
            graph_.successors.insert(graph_.successors.end(), successors.begin(), successors.end());
            graph_.first_successor.push_back(static_cast<std::uint32_t>(graph_.successors.size()));
        }
    }

    using Key = std::tuple<Link, std::uint64_t, std::uint64_t>;
    const StarMessages& star_;
    std::set<std::uint64_t> leaves_;
    double chunk_bytes_ = 0, cap_bytes_per_s_ = 0;
    sim::StepGraph graph_;
    std::map<Key, Message> last_;
    std::map<Key, std::uint32_t> flows_, links_;
    std::vector<std::pair<Message, Message>> edges_;
};

}  // namespace

sim::StepGraph star_messages(const StarMessages& star) {
    return Builder(star).graph();
}

}  // namespace zeroplan::test
