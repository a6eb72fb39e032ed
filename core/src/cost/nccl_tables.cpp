#include "cost/nccl_tables.hpp"

#include <array>
#include <bit>

namespace zeroplan::nccl {
namespace {

template <typename T>
constexpr std::size_t index(T value) {
    return static_cast<std::size_t>(value);
}
/// Columns of the bandwidth tables: 1, 2, more nodes.
constexpr std::size_t node_column(std::uint64_t nodes) {
    return nodes <= 2 ? nodes - 1 : 2;
}

using ByProtocol = std::array<double, 3>;     // LL, LL128, Simple
using ByNodes = std::array<double, 3>;        // 1, 2, more nodes
using ByGeneration = std::array<ByNodes, 4>;  // Volta, Ampere, Hopper, Blackwell
// Tree, Ring, NVLS, NVLSTree, PAT, CollNetDirect, CollNetChain
using ByAlgorithm = std::array<ByProtocol, 7>;

constexpr ByAlgorithm base{{{6.8, 14.0, 8.4}, {6.6, 14.0, 8.4}, {}, {}, {8.0, 8.0, 8.0}, {}, {}}};
constexpr std::array<ByAlgorithm, 3> hop{{
    {{{0.6, 1.25, 4.0}, {0.6, 1.9, 3.4}, {0, 0, 25}, {0, 0, 25}, {0, 0, 4.0}, {0, 0, 3.7}, {0, 0, 2.8}}},
    {{{1.0, 1.9, 4.0}, {1.0, 2.5, 5.7}, {}, {}, {0, 0, 4.0}, {0, 0, 3.7}, {0, 0, 2.8}}},
    {{{5.0, 8.5, 14.0}, {2.7, 4.0, 14.0}, {0, 0, 18}, {0, 0, 20.9}, {0, 0, 14.0}, {0, 0, 31}, {0, 0, 30}}},
}};

constexpr ByGeneration ll_max{
    {{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141.0, 45.0, 35.0}, {282.0, 90.0, 70.0}}};
constexpr std::array<double, 4> ring_ll128_channel{20.0, 20.0, 36.7, 40.0};
constexpr ByGeneration tree_ll128_channel{
    {{20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {36.7, 36.7, 29.0}, {55.6, 31.67, 20.0}}};
constexpr ByGeneration tree_channel{
    {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}, {70.0, 42.8, 24.0}}};
constexpr ByGeneration nvls_tree_channel{
    {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {0.0, 57.7, 45.5}, {0.0, 96.0, 80.0}}};
constexpr std::array<double, 4> nvls_efficiencies{0, 0, 0.85, 0.74};

constexpr std::array speeds_intra{40.0, 30.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0};
constexpr std::array speeds_inter{48.0, 30.0, 28.0, 24.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0,
                                  7.0,  6.0,  5.0,  4.0,  3.0,  2.4,  1.2,  0.24, 0.12};
constexpr std::array hopper_intra{60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 11.0, 6.0, 3.0};
constexpr std::array hopper_inter{48.0, 45.0, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5,
                                  15.0, 12.0, 6.0,  3.0,  2.4,  1.2,  0.24, 0.12};
constexpr std::array blackwell_intra{90.0, 80.0, 70.0, 60.0, 50.0, 45.0, 40.0, 30.0, 24.0, 20.0, 19.0, 18.0};
constexpr std::array blackwell_inter{96.0, 86.0, 80.0, 48.0, 45.1, 42.0, 40.0, 30.0, 24.0, 22.0,
                                     20.0, 17.5, 15.0, 12.0, 6.0,  3.0,  2.4,  1.2,  0.24, 0.12};

constexpr std::array<std::array<double, 24>, 3> tree_factors{{
    {1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5,
     0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.0, 1.0, 1.0, 1.0},
    {1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6,
     0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1.0, 1.0, 1.0},
    {0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5,
     0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9, 0.9},
}};

std::size_t row(CollectiveAlgorithm algorithm) {
    switch (algorithm) {
        case CollectiveAlgorithm::tree:
            return 0;
        case CollectiveAlgorithm::nvls:
            return 2;
        case CollectiveAlgorithm::nvls_tree:
            return 3;
        case CollectiveAlgorithm::pat:
            return 4;
        case CollectiveAlgorithm::collnet_direct:
            return 5;
        case CollectiveAlgorithm::collnet_chain:
            return 6;
        default:
            return 1;
    }
}

}  // namespace

Generation generation(std::uint32_t compute_capability) {
    if (compute_capability == 0) return Generation::ampere;
    if (compute_capability < 80) return Generation::volta;
    if (compute_capability < 90) return Generation::ampere;
    return compute_capability < 100 ? Generation::hopper : Generation::blackwell;
}

double base_latency_us(CollectiveAlgorithm algorithm, CollectiveProtocol protocol) {
    return base[row(algorithm)][index(protocol)];
}
double hop_latency_us(Hardware hardware, CollectiveAlgorithm algorithm, CollectiveProtocol protocol) {
    return hop[index(hardware)][row(algorithm)][index(protocol)];
}

double ll_max_gb(Generation gpu, std::uint64_t nodes) {
    const Generation table_row = nodes == 1 ? gpu : Generation::volta;  // the row of Intel hosts
    return ll_max[index(table_row)][node_column(nodes)];
}
double ring_ll128_channel_gb(Generation gpu) {
    return ring_ll128_channel[index(gpu)];
}
double tree_channel_gb(Generation gpu, std::uint64_t nodes) {
    return tree_channel[index(gpu)][node_column(nodes)];
}
double tree_ll128_channel_gb(Generation gpu, std::uint64_t nodes) {
    return tree_ll128_channel[index(gpu)][node_column(nodes)];
}
double nvls_tree_channel_gb(Generation gpu, std::uint64_t nodes) {
    return nvls_tree_channel[index(gpu)][node_column(nodes)];
}
double nvls_efficiency(Generation gpu) {
    return nvls_efficiencies[index(gpu)];
}

double nvls_channels(Generation gpu, std::uint64_t nodes, std::uint64_t ranks_per_node, double nic_gb) {
    constexpr double fast = 96, slow = 48, most = 32, fewer = 24;
    if (gpu != Generation::blackwell) return 16;
    if (nodes == 1) return fewer;
    if (nodes == 2 || nic_gb < slow) return most;
    return nic_gb >= fast && ranks_per_node > 8 ? most : fewer;
}

std::span<const double> channel_speeds_gb(Generation gpu, bool across_nodes) {
    if (gpu == Generation::blackwell) {
        if (across_nodes) return blackwell_inter;
        return blackwell_intra;
    }
    if (gpu == Generation::hopper) {
        if (across_nodes) return hopper_inter;
        return hopper_intra;
    }
    if (across_nodes) return speeds_inter;
    return speeds_intra;
}

double tree_size_factor(CollectiveProtocol protocol, std::uint64_t bytes) {
    const std::uint64_t units = bytes >> 6;
    if (units == 0) return 1;
    const auto log = static_cast<std::size_t>(std::bit_width(units) - 1);
    return log < 23 ? tree_factors[index(protocol)][log] : 1;
}

}  // namespace zeroplan::nccl
