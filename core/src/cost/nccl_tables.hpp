#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "zeroplan/collective_cost.hpp"

/// The constants of NCCL 2.30.7's tuning model (src/graph/tuning.cc, search.cc, topo.h): microseconds, GB/s.
namespace zeroplan::nccl {

enum class Hardware : std::uint8_t { nvlink, pci, net };
enum class Generation : std::uint8_t { volta, ampere, hopper, blackwell };

/// By compute capability; 0 (a GPU that isn't NVIDIA's) counts as Ampere, whose RCCL has the same design.
Generation generation(std::uint32_t compute_capability);

double base_latency_us(CollectiveAlgorithm algorithm, CollectiveProtocol protocol);
double hop_latency_us(Hardware hardware, CollectiveAlgorithm algorithm, CollectiveProtocol protocol);

/// Highest LL bus bandwidth: by GPU in one node, by CPU beyond (an Intel host is taken).
double ll_max_gb(Generation gpu, std::uint64_t nodes);
double ring_ll128_channel_gb(Generation gpu);
double tree_channel_gb(Generation gpu, std::uint64_t nodes);
double tree_ll128_channel_gb(Generation gpu, std::uint64_t nodes);
double nvls_tree_channel_gb(Generation gpu, std::uint64_t nodes);
double nvls_efficiency(Generation gpu);

/// Speeds of one channel that the graph search tries, fastest first.
std::span<const double> channel_speeds_gb(Generation gpu, bool across_nodes);

/// Factor on a tree all-reduce's bandwidth for buffers between 64 B and 1 GiB.
double tree_size_factor(CollectiveProtocol protocol, std::uint64_t bytes);

/// Heads of NVLS: one GPU each, at most this many; each is a channel.
inline constexpr std::uint64_t nvls_max_heads = 8;
/// NVLS gathers and scatters for no more ranks of a node (NCCL_MAX_NVLS_ARITY).
inline constexpr std::uint64_t nvls_max_scattered = 32;
/// CollNet is for no more ranks of a node, and has no more heads (NCCL_MAX_DIRECT_ARITY + 1).
inline constexpr std::uint64_t collnet_max_ranks = 8;
/// And for no fewer nodes (NCCL_COLLNET_NODE_THRESHOLD).
inline constexpr std::uint64_t collnet_least_nodes = 2;

/// Of one communicator (MAXCHANNELS).
inline constexpr double max_channels = 64;
/// Of NVLS. source: src/transport/nvls.cc, ncclNvlsTuning
double nvls_channels(Generation gpu, std::uint64_t nodes, std::uint64_t ranks_per_node, double nic_gb);

/// Cost of driving the network proxy in every step of a ring, Intel host.
inline constexpr double net_overhead_us = 1.0;

}  // namespace zeroplan::nccl
