#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "zeroplan/calibration.hpp"
#include "zeroplan/collective_choice.hpp"
#include "zeroplan/dtype.hpp"
#include "zeroplan/units.hpp"

namespace zeroplan {

/// Public figures of a GPU (topologies/gpus); `host` is a process on this machine's cores.
struct GpuSpec {
    std::string name;
    Bytes memory_usable;  ///< what the driver offers a process
    double hbm_bytes_per_s = 0;
    double fp32_flop_per_s = 0;  ///< dense peak rates; 0: the GPU lacks the format
    double tf32_flop_per_s = 0, bf16_flop_per_s = 0, fp16_flop_per_s = 0, fp8_flop_per_s = 0;
    double link_bytes_per_s = 0;           ///< NVLink or xGMI per GPU and direction, PCIe where there is none
    std::string link;                      ///< "nvlink4", "pcie4", "shared_memory" …
    std::uint32_t compute_capability = 0;  ///< 90 for Hopper, 80 for A100 …; 0 where it has none
    std::uint32_t multiprocessors = 0;     ///< compute units of an AMD GPU; 0: not stated
    bool is_host = false;                  ///< the host back end: no context, no library workspace
    friend bool operator==(const GpuSpec&, const GpuSpec&) = default;
};

enum class IntraNode : std::uint8_t { nvswitch, nvlink_mesh, nvlink_pairs, pcie, xgmi, shared_memory };
enum class InterNodeKind : std::uint8_t {
    infiniband,
    roce,
    efa,
    ethernet,
    slingshot,
    omni_path,
    nvlink,
    none
};

struct InterNode {
    InterNodeKind kind = InterNodeKind::none;
    double bytes_per_s_per_gpu = 0;   ///< per GPU and direction
    std::uint64_t nics_per_node = 0;  ///< network devices that NCCL sees; 0: one a GPU
    bool sharp = false;               ///< its switches reduce, and NCCL_COLLNET_ENABLE lets NCCL use that
    friend bool operator==(const InterNode&, const InterNode&) = default;
};

/// One node's host side.
struct HostSpec {
    Bytes memory;
    double dram_bytes_per_s = 0, pcie_bytes_per_s = 0, nvme_bytes_per_s = 0;
    std::uint64_t cores = 0;
    friend bool operator==(const HostSpec&, const HostSpec&) = default;
};

/// `cluster` of a scenario, resolved. World size = gpus_used; ranks fill nodes in order.
struct ClusterSpec {
    std::string topology;  ///< name of the preset or file, "" if inline
    std::uint64_t nodes = 1, gpus_per_node = 8, gpus_used = 8;
    GpuSpec gpu;
    IntraNode intra_node = IntraNode::nvswitch;
    InterNode inter_node;
    HostSpec host;
    std::optional<double> power_limit_watts;
    CollectiveChoice nccl;    ///< what NCCL_ALGO and NCCL_PROTO force
    Calibration calibration;  ///< measured figures of this very cluster
    friend bool operator==(const ClusterSpec&, const ClusterSpec&) = default;
};

std::string_view to_string(IntraNode);
std::string_view to_string(InterNodeKind);

/// Dense peak rate of matrix products in `dtype`; 0 if the GPU lacks the format.
double peak_flop_per_s(const GpuSpec& gpu, DType dtype);

}  // namespace zeroplan
