#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace zeroplan {

enum class CollectiveAlgorithm : std::uint8_t {
    copy,
    ring,
    tree,
    nvls,
    nvls_tree,
    pat,             ///< parallel aggregated trees: gathers and scatters of one rank a node
    collnet_direct,  ///< the network's switches reduce; on a node, every GPU to and from every head
    collnet_chain,   ///< the network's switches reduce; on a node, a chain of GPUs for each head
    shared_memory,
    pairwise  ///< messages from each rank to each: all-to-all, send and receive
};
enum class CollectiveProtocol : std::uint8_t { ll, ll128, simple };
std::string_view to_string(CollectiveAlgorithm algorithm);
std::string_view to_string(CollectiveProtocol protocol);
/// NCCL's CollNet: only where InterNode::sharp.
constexpr bool is_collnet(CollectiveAlgorithm algorithm) {
    return algorithm == CollectiveAlgorithm::collnet_direct ||
           algorithm == CollectiveAlgorithm::collnet_chain;
}

/// What the user forces (NCCL_ALGO, NCCL_PROTO); empty: NCCL's choice.
struct CollectiveChoice {
    std::optional<CollectiveAlgorithm> algorithm;
    std::optional<CollectiveProtocol> protocol;
    friend bool operator==(const CollectiveChoice&, const CollectiveChoice&) = default;
};

}  // namespace zeroplan
