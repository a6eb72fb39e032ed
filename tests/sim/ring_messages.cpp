#include "sim/ring_messages.hpp"

#include <map>
#include <stdexcept>

namespace zeroplan::test {
namespace {

class Builder {
public:
    Builder(const RingMessages& ring, const FabricRoutes& routes) : ring_(ring), routes_(routes) {
        for (const GroupNode& node : ring.site.nodes)
            if (node.rails.size() != channels()) throw std::invalid_argument("nodes of different sizes");
    }

    sim::StepGraph graph() {
        for (std::size_t channel = 0; channel < channels(); ++channel) {
            const auto first_flow = static_cast<std::uint32_t>(graph_.flows.size());
            for (std::size_t place = 0; place < ranks(); ++place) add_flow(channel, place);
            add_messages(first_flow);
        }
        graph_.background = static_cast<std::uint32_t>(graph_.nodes.size());
        join();
        return std::move(graph_);
    }

private:
    enum class LinkKind { gpu_out, gpu_in, nic_out, nic_in, fabric };

    std::size_t channels() const { return ring_.site.nodes.front().rails.size(); }
    std::size_t ranks() const { return ring_.site.ranks; }
    std::size_t steps() const { return (ring_.kind == CollectiveKind::all_reduce ? 2 : 1) * (ranks() - 1); }

    void add_flow(std::size_t channel, std::size_t place) {
        sim::GraphFlow& flow = graph_.flows.emplace_back();
        const double parts = static_cast<double>(channels()) * static_cast<double>(ranks());
        const double passes = static_cast<double>(steps()) / static_cast<double>(ranks());
        flow.cost.bytes = flow.cost.unit_bytes = ring_.cost.bytes / parts;
        flow.cost.cap_bytes_per_s = ring_.cost.cap_bytes_per_s * passes / static_cast<double>(channels());
        const std::size_t node = place / channels(), next = (node + 1) % ring_.site.nodes.size();
        if ((place + 1) % channels() != 0)
            stay(flow, rank_at(channel, place), rank_at(channel, place + 1));
        else
            leave(flow, ring_.site.nodes[node], ring_.site.nodes[next], channel);
    }

    /// Ranks are numbered node after node.
    std::size_t rank_at(std::size_t channel, std::size_t place) const {
        return place / channels() * channels() + (channel + place) % channels();
    }

    void stay(sim::GraphFlow& flow, std::size_t from, std::size_t to) {
        use(flow, LinkKind::gpu_out, from, ring_.rates.intra_node_bytes_per_s);
        use(flow, LinkKind::gpu_in, to, ring_.rates.intra_node_bytes_per_s);
    }

    void leave(sim::GraphFlow& flow, const GroupNode& from, const GroupNode& to, std::size_t channel) {
        use(flow, LinkKind::nic_out, from.node * channels() + channel, ring_.rates.nic_bytes_per_s);
        use(flow, LinkKind::nic_in, to.node * channels() + channel, ring_.rates.nic_bytes_per_s);
        Crossing crossing;
        routes_.add_route(crossing, {from.node, from.rails[channel]}, {to.node, to.rails[channel]}, 1);
        for (const auto& [link, units] : crossing) {
            if (units != 1) throw std::invalid_argument("a message can't be parted");
            use(flow, LinkKind::fabric, link, routes_.bytes_per_s(link));
        }
    }

    void use(sim::GraphFlow& flow, LinkKind kind, std::uint64_t number, double bytes_per_s) {
        const auto next = static_cast<std::uint32_t>(graph_.link_bytes_per_s.size());
        const auto [place, is_new] = links_.try_emplace({kind, number}, next);
        if (is_new) graph_.link_bytes_per_s.push_back(bytes_per_s);
        flow.links.push_back({place->second, 1});
    }

    /// Step after step, by place; a message waits for the one before it and for what it hands on.
    void add_messages(std::uint32_t first_flow) {
        const auto count = static_cast<std::uint32_t>(ranks());
        const auto first = static_cast<std::uint32_t>(graph_.nodes.size());
        for (std::uint32_t step = 0; step < steps(); ++step)
            for (std::uint32_t place = 0; place < count; ++place) {
                graph_.nodes.push_back(
                    {.work = {}, .collective = first_flow + place, .waits_for = step == 0 ? 0U : 2U});
                if (step == 0) continue;
                const std::uint32_t before = first + (step - 1) * count, now = before + count + place;
                edges_.emplace_back(before + place, now);
                edges_.emplace_back(before + (place + count - 1) % count, now);
            }
    }

    void join() {
        std::vector<std::vector<std::uint32_t>> behind(graph_.nodes.size());
        for (const auto& [from, to] : edges_) behind[from].push_back(to);
        graph_.first_successor.push_back(0);
        for (const auto& successors : behind) {
            graph_.successors.insert(graph_.successors.end(), successors.begin(), successors.end());
            graph_.first_successor.push_back(static_cast<std::uint32_t>(graph_.successors.size()));
        }
    }

    const RingMessages& ring_;
    const FabricRoutes& routes_;
    sim::StepGraph graph_;
    std::map<std::pair<LinkKind, std::uint64_t>, std::uint32_t> links_;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;
};

}  // namespace

sim::StepGraph ring_messages(const RingMessages& ring, const FabricRoutes& routes) {
    return Builder(ring, routes).graph();
}

}  // namespace zeroplan::test
