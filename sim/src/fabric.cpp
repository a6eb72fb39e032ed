#include "fabric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace zeroplan::sim {
namespace {

namespace sg = compat::sg;

/// Payloads are whole bytes in SimGrid: bytes and rates are scaled alike by a power of two, 2^20 if the
/// largest payload allows, so that rounding vanishes.
double payload_scale(const std::vector<GraphFlow>& flows) {
    double largest = 1;
    for (const GraphFlow& c : flows) largest = std::max(largest, c.cost.unit_bytes);
    return std::min(std::ldexp(1.0, 20), std::ldexp(1.0, 62 - std::ilogb(largest)));
}

sg::Link* shared_link(sg::NetZone* zone, const std::string& name, double rate) {
    return compat::add_link(zone, name, rate)->set_latency(0)->seal();
}

sg::Link* cap_link(sg::NetZone* zone, const std::string& name, double rate) {
    return compat::add_link(zone, name, rate)
        ->set_latency(0)
        ->set_sharing_policy(sg::Link::SharingPolicy::FATPIPE)
        ->seal();
}

}  // namespace

Fabric::Fabric(sg::Engine& engine, const StepGraph& graph) {
    sg::NetZone* zone = compat::root_zone(engine);
    const std::vector<GraphFlow>& flows = graph.flows;
    const double scale = payload_scale(flows);
    std::vector<sg::Link*> links;
    for (const double bytes_per_s : graph.link_bytes_per_s)
        links.push_back(shared_link(zone, fmt::format("link {}", links.size()), bytes_per_s * scale));
    for (std::size_t i = 0; i < flows.size(); ++i) {
        const CollectiveCost& cost = flows[i].cost;
        Flow& flow = flows_.emplace_back();
        if (!(cost.unit_bytes > 0)) continue;
        flow.payload = static_cast<std::uint64_t>(std::llround(cost.unit_bytes * scale));
        flow.from = compat::add_host(zone, fmt::format("from {}", i));
        flow.to = compat::add_host(zone, fmt::format("to {}", i));
        // The cap is a rate of the whole buffer; the flow carries one unit of it.
        const double cap = cost.cap_bytes_per_s * cost.unit_bytes / cost.bytes;
        std::vector<sg::LinkInRoute> route{
            sg::LinkInRoute(cap_link(zone, fmt::format("cap {}", i), cap * scale))};
        for (const LinkUse& use : flows[i].links)
            route.insert(route.end(), use.weight, sg::LinkInRoute(links[use.link]));
        compat::add_route(zone, flow.from, flow.to, route);
    }
    zone->seal();
}

sg::CommPtr Fabric::create_flow(std::uint32_t index) const {
    sg::CommPtr comm = sg::Comm::sendto_init();
    comm->set_payload_size(flows_[index].payload);
    return comm;
}

void Fabric::launch(sg::Comm& comm, std::uint32_t index) const {
    comm.set_source(flows_[index].from);
    comm.set_destination(flows_[index].to);
    compat::start(comm);
}

}  // namespace zeroplan::sim
