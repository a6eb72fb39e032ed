#include <array>

#include "zeroplan/words.hpp"

namespace zeroplan {
namespace {

constexpr std::array algorithms{
    Word<CollectiveAlgorithm>{CollectiveAlgorithm::ring, "ring"},
    Word<CollectiveAlgorithm>{CollectiveAlgorithm::tree, "tree"},
    Word<CollectiveAlgorithm>{CollectiveAlgorithm::nvls, "nvls"},
    Word<CollectiveAlgorithm>{CollectiveAlgorithm::nvls_tree, "nvls_tree"},
    Word<CollectiveAlgorithm>{CollectiveAlgorithm::pat, "pat"},
    Word<CollectiveAlgorithm>{CollectiveAlgorithm::collnet_direct, "collnet_direct"},
    Word<CollectiveAlgorithm>{CollectiveAlgorithm::collnet_chain, "collnet_chain"},
};
constexpr std::array protocols{
    Word<CollectiveProtocol>{CollectiveProtocol::ll, "ll"},
    Word<CollectiveProtocol>{CollectiveProtocol::ll128, "ll128"},
    Word<CollectiveProtocol>{CollectiveProtocol::simple, "simple"},
};

}  // namespace

/// Those that can be forced: the others are what happens where there is no choice.
template <>
std::span<const Word<CollectiveAlgorithm>> words() {
    return algorithms;
}
template <>
std::span<const Word<CollectiveProtocol>> words() {
    return protocols;
}

std::string_view to_string(CollectiveAlgorithm algorithm) {
    switch (algorithm) {
        case CollectiveAlgorithm::copy:
            return "copy";
        case CollectiveAlgorithm::shared_memory:
            return "shared_memory";
        case CollectiveAlgorithm::pairwise:
            return "pairwise";
        default:
            return word_of(algorithm);
    }
}

std::string_view to_string(CollectiveProtocol protocol) {
    return word_of(protocol);
}

}  // namespace zeroplan
