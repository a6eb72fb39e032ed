#include "zeroplan/cluster_spec.hpp"

#include <array>

#include "zeroplan/words.hpp"

namespace zeroplan {
namespace {

constexpr std::array intra_nodes{
    Word<IntraNode>{IntraNode::nvswitch, "nvswitch"},
    Word<IntraNode>{IntraNode::nvlink_mesh, "nvlink_mesh"},
    Word<IntraNode>{IntraNode::nvlink_pairs, "nvlink_pairs"},
    Word<IntraNode>{IntraNode::pcie, "pcie"},
    Word<IntraNode>{IntraNode::xgmi, "xgmi"},
    Word<IntraNode>{IntraNode::shared_memory, "shared_memory"},
};
constexpr std::array inter_node_kinds{
    Word<InterNodeKind>{InterNodeKind::infiniband, "infiniband"},
    Word<InterNodeKind>{InterNodeKind::roce, "roce"},
    Word<InterNodeKind>{InterNodeKind::efa, "efa"},
    Word<InterNodeKind>{InterNodeKind::ethernet, "ethernet"},
    Word<InterNodeKind>{InterNodeKind::slingshot, "slingshot"},
    Word<InterNodeKind>{InterNodeKind::omni_path, "omni_path"},
    Word<InterNodeKind>{InterNodeKind::nvlink, "nvlink"},
    Word<InterNodeKind>{InterNodeKind::none, "none"},
};

}  // namespace

template <>
std::span<const Word<IntraNode>> words() {
    return intra_nodes;
}
std::string_view to_string(IntraNode value) {
    return word_of(value);
}

template <>
std::span<const Word<InterNodeKind>> words() {
    return inter_node_kinds;
}
std::string_view to_string(InterNodeKind value) {
    return word_of(value);
}

double peak_flop_per_s(const GpuSpec& gpu, DType dtype) {
    switch (dtype) {
        case DType::fp32:
            return gpu.fp32_flop_per_s;
        case DType::tf32:
            return gpu.tf32_flop_per_s;
        case DType::fp16:
            return gpu.fp16_flop_per_s;
        case DType::bf16:
            return gpu.bf16_flop_per_s;
        case DType::fp8:
            return gpu.fp8_flop_per_s;
        case DType::int64:
        case DType::uint8:
            break;
    }
    return 0;
}

}  // namespace zeroplan
