#pragma once
#include "step_graph.hpp"
#include "zeroplan/collective_cost.hpp"
#include "zeroplan/fabric_crossing.hpp"

namespace zeroplan::test {

/// A ring collective message by message: what the library simulates as one flow.
struct RingMessages {
    CollectiveKind kind = CollectiveKind::all_gather;
    CollectiveCost cost;  ///< of its ring: the bytes, and how fast a channel is
    CommunicatorSite site;
    LinkRates rates;
};

/// Every step of every rank as a message of its own on the links that it really crosses: GPU links and NICs
/// out and in, and the links of the fabric. A node has as many channels as ranks; channel c enters a node at
/// rank c, passes all of its ranks and leaves it over NIC c. A rank sends the next part once it has it and
/// its last message has gone.
sim::StepGraph ring_messages(const RingMessages& ring, const FabricRoutes& routes);

}  // namespace zeroplan::test
