#include "zeroplan/collective_cost.hpp"

namespace zeroplan {

std::string_view to_string(CollectiveAlgorithm algorithm) {
    switch (algorithm) {
        case CollectiveAlgorithm::copy:
            return "copy";
        case CollectiveAlgorithm::ring:
            return "ring";
        case CollectiveAlgorithm::tree:
            return "tree";
        case CollectiveAlgorithm::nvls:
            return "nvls";
        case CollectiveAlgorithm::nvls_tree:
            return "nvls_tree";
        case CollectiveAlgorithm::shared_memory:
            return "shared_memory";
        case CollectiveAlgorithm::pairwise:
            return "pairwise";
    }
    return "?";
}

std::string_view to_string(CollectiveProtocol protocol) {
    switch (protocol) {
        case CollectiveProtocol::ll:
            return "ll";
        case CollectiveProtocol::ll128:
            return "ll128";
        case CollectiveProtocol::simple:
            return "simple";
    }
    return "?";
}

}  // namespace zeroplan
