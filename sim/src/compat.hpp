#pragma once
#include <simgrid/s4u.hpp>

// These need what s4u.hpp defines.
#include <simgrid/version.h>

#include <simgrid/kernel/Timer.hpp>

#include <string>
#include <vector>

/// What SimGrid 3.32 (Debian 12) and 4.x spell differently.
namespace zeroplan::sim::compat {

namespace sg = simgrid::s4u;

/// Before the first link exists. Flows share links by max-min fairness and nothing else: no TCP window, no
/// cross traffic, no calibration factors. Dates are exact to rounding.
inline void configure() {
    xbt_log_control_set("root.thresh:warning");
#if SIMGRID_VERSION >= 33600
    sg::Engine::set_config("network/model:raw");
#else
    sg::Engine::set_config("network/model:CM02");
    sg::Engine::set_config("network/crosstraffic:0");
    sg::Engine::set_config("network/TCP-gamma:0");
#endif
#if SIMGRID_VERSION >= 33400
    sg::Engine::set_config("precision/timing:1e-15");
#else
    sg::Engine::set_config("surf/precision:1e-15");
#endif
}

inline sg::NetZone* root_zone(sg::Engine& engine) {
#if SIMGRID_VERSION >= 40000
    return engine.get_netzone_root();
#else
    static_cast<void>(engine);
    return sg::create_full_zone("root");
#endif
}

inline sg::Host* add_host(sg::NetZone* zone, const std::string& name) {
#if SIMGRID_VERSION >= 40000
    return zone->add_host(name, 1.0);
#else
    return zone->create_host(name, 1.0);
#endif
}

inline sg::Link* add_link(sg::NetZone* zone, const std::string& name, double bytes_per_s) {
#if SIMGRID_VERSION >= 40000
    return zone->add_link(name, bytes_per_s);
#else
    return zone->create_link(name, bytes_per_s);
#endif
}

inline void add_route(sg::NetZone* zone, sg::Host* from, sg::Host* to,
                      const std::vector<sg::LinkInRoute>& links) {
#if SIMGRID_VERSION >= 33500
    zone->add_route(from, to, links, false);
#else
    zone->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, links, false);
#endif
}

template <typename Function>
void on_comm_completion(Function function) {
#if SIMGRID_VERSION >= 33400
    sg::Comm::on_completion_cb([function](const sg::Comm& comm) { function(comm); });
#else
    sg::Activity::on_completion_cb([function](const sg::Activity& activity) { function(activity); });
#endif
}

/// A comm starts itself once payload, source and destination are set.
inline void start(sg::Comm& comm) {
    if (comm.get_state() == sg::Activity::State::STARTED) return;
#if SIMGRID_VERSION >= 33400
    comm.start();
#else
    comm.vetoable_start();
#endif
}

}  // namespace zeroplan::sim::compat
