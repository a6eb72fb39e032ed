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
    pat,  ///< parallel aggregated trees: gathers and scatters of one rank a node
    shared_memory,
    pairwise  ///< messages from each rank to each: all-to-all, send and receive
};
enum class CollectiveProtocol : std::uint8_t { ll, ll128, simple };
std::string_view to_string(CollectiveAlgorithm algorithm);
std::string_view to_string(CollectiveProtocol protocol);

/// What the user forces (NCCL_ALGO, NCCL_PROTO); empty: NCCL's choice.
struct CollectiveChoice {
    std::optional<CollectiveAlgorithm> algorithm;
    std::optional<CollectiveProtocol> protocol;
    friend bool operator==(const CollectiveChoice&, const CollectiveChoice&) = default;
};

}  // namespace zeroplan
