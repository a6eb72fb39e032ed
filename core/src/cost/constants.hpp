#pragma once
#include <array>

#include "zeroplan/plan.hpp"

namespace zeroplan::cost {

inline const char* const assumption = "assumption";
inline const char* const calibrated = "calibrated constant";
inline const char* const exact_rule = "exact rule";
inline const char* const published_runs =
    "published FSDP runs of 1b to 70b decoders (llm-foundry MPT tables, torchtitan): fitted so that full "
    "recompute has no median error while collectives slow nothing down";
inline const char* const published_collectives =
    "published nccl-tests logs of all-reduce (Echo, stas00, AWS) on A100, H100 and H200, 1 KiB to 16 GiB, "
    "beyond "
    "NCCL's own law; replaced by a log of the cluster's own";
inline const char* const flash_papers = "tables of the FlashAttention-2 paper, causal, head width 128";

/// Factors on durations at one end of a step time's interval.
struct IntervalEnd {
    Constant products, attention, memory, communication, offload;
};

/// The cost model's constants in one place. NCCL's own tables stand in nccl_tables.cpp.
struct Constants {
    /// By Generation. Sustained shares of the dense peak, which newer GPUs reach less of: power and clocks
    /// fall under load, and attention kernels lag behind.
    std::array<Constant, 4> gemm_efficiency{
        Constant{"gemm_efficiency_volta", 0.63, "1", "bigscience's Megatron-LM logs on V100", calibrated},
        Constant{"gemm_efficiency_ampere", 0.72, "1", published_runs, calibrated},
        Constant{"gemm_efficiency_hopper", 0.53, "1", published_runs, calibrated},
        Constant{"gemm_efficiency_blackwell", 0.47, "1", "SimuMax's Megatron-LM runs on B200", calibrated},
    };
    std::array<Constant, 4> attention_forward_efficiency{
        Constant{"attention_forward_efficiency_volta", 0.4, "1", "no FlashAttention-2 for Volta", assumption},
        Constant{"attention_forward_efficiency_ampere", 0.55, "1", flash_papers, assumption},
        Constant{"attention_forward_efficiency_hopper", 0.38, "1", flash_papers, assumption},
        Constant{"attention_forward_efficiency_blackwell", 0.38, "1", "as Hopper", assumption},
    };
    std::array<Constant, 4> attention_backward_efficiency{
        Constant{"attention_backward_efficiency_volta", 0.3, "1", "no FlashAttention-2 for Volta",
                 assumption},
        Constant{"attention_backward_efficiency_ampere", 0.45, "1", flash_papers, assumption},
        Constant{"attention_backward_efficiency_hopper", 0.3, "1", flash_papers, assumption},
        Constant{"attention_backward_efficiency_blackwell", 0.3, "1", "as Hopper", assumption},
    };
    Constant product_tile{"product_tile", 128, "1", "output tiles of cuBLAS and CUTLASS kernels", assumption};
    Constant product_fill_depth{"product_fill_depth", 128, "1",
                                "two k-steps of 64 to fill and drain a tile's pipeline (CUTLASS)",
                                assumption};
    Constant power_exponent{"clock_power_exponent", 1.0 / 3, "1",
                            "dynamic power is frequency · voltage², voltage about proportional to frequency",
                            assumption};
    Constant host_gemm_efficiency{"host_gemm_efficiency", 0.7, "1",
                                  "OpenBLAS on matrices of some hundred rows", assumption};
    Constant causal_attention_share{"causal_attention_share", 0.5, "1",
                                    "a fused kernel skips the blocks above the diagonal of a causal mask",
                                    exact_rule};
    Constant memory_efficiency{"memory_efficiency", 0.85, "1",
                               "streaming kernels reach 0.8 to 0.93 of the memory's rate", assumption};
    Constant kernel_start_s{"kernel_start_s", 3e-6, "s",
                            "start and drain of one kernel behind another on a stream: 2 to 5 us",
                            assumption};
    Constant host_call_s{"host_call_s", 1e-6, "s", "call of one operator of the host back end", assumption};
    Constant upload_efficiency{"upload_efficiency", 0.8, "1", "pinned copies reach 0.8 of PCIe's rate",
                               assumption};
    Constant pageable_share{"pageable_copy_share", 0.4, "1",
                            "copies of pageable memory go through a pinned buffer: 0.35 to 0.45 of the rate "
                            "of pinned ones (NVIDIA, How to Optimize Data Transfers in CUDA C/C++)",
                            assumption};
    Constant host_memory_efficiency{"host_memory_efficiency", 0.8, "1",
                                    "STREAM reaches 0.75 to 0.85 of a server's DRAM rate", assumption};
    Constant host_step_efficiency{"host_step_efficiency", 0.43, "1",
                                  "ZeRO-Offload (USENIX ATC 2021), table 4: CPU-Adam takes 2.57 s for 10e9 "
                                  "parameters of 28 B on DGX-2's 2 x 6 channels of DDR4-2666",
                                  assumption};
    Constant host_core_bytes_per_s{"host_core_bytes_per_s", 10e9, "B/s",
                                   "STREAM on one core of a server reaches 10 to 14 GB/s", assumption};
    Constant unfused_host_step{"unfused_host_step", 5.7, "1",
                               "ZeRO-Offload, table 4: PyTorch's own Adam on the host takes 14.76 s where "
                               "CPU-Adam takes 2.57",
                               assumption};

    Constant nvlink2_efficiency{"nvlink2_efficiency", 0.8, "1", "NCCL topo.h: 20 of 25 GB/s a link (SM70)",
                                exact_rule};
    Constant nvlink3_efficiency{"nvlink3_efficiency", 0.8, "1", "NCCL topo.h: 20 of 25 GB/s a link (SM80)",
                                exact_rule};
    Constant nvlink4_efficiency{"nvlink4_efficiency", 0.824, "1",
                                "NCCL topo.h: 20.6 of 25 GB/s a link (SM90)", exact_rule};
    Constant nvlink5_efficiency{"nvlink5_efficiency", 0.802, "1",
                                "NCCL topo.h: 40.1 of 50 GB/s a link (SM100)", exact_rule};
    Constant pcie_efficiency{"pcie_efficiency", 0.75, "1",
                             "NCCL topo.h: 12, 24, 48 of 16, 32, 64 GB/s (Gen 3, 4, 5)", exact_rule};
    Constant pcie_staging_efficiency{"pcie_staging_efficiency", 0.55, "1",
                                     "ring over PCIe without peer-to-peer crosses the host's memory: 7.3 "
                                     "GB/s on 8 x 3090 (NVIDIA/nccl#644), "
                                     "25.9 GB/s with peer-to-peer on 4 x 4090 (tinygrad), of 24",
                                     assumption};
    Constant xgmi_efficiency{"xgmi_efficiency", 0.8, "1", "taken as NVLink's", assumption};
    Constant bridge_bytes_per_s{
        "nvlink_bridge_bytes_per_s", 145e9, "B/s",
        "NVLink bridges of a pair of PCIe cards: all-reduce reaches 116 GB/s on two H100 "
        "PCIe (NVIDIA/nccl#1161), of 300 by the data sheet",
        calibrated};
    Constant small_bridge_bytes_per_s{
        "nvlink_bridge_bytes_per_s_sm86", 56.25e9, "B/s",
        "NVLink bridge of RTX 3090 and RTX A6000 (data sheets: 112.5 GB/s both ways)", exact_rule};
    Constant collective_start_s{"collective_start_s", 12e-6, "s", published_collectives, calibrated};
    Constant collective_ramp_s{"collective_ramp_s", 45e-6, "s", published_collectives, calibrated};
    Constant collective_ramp_bytes{"collective_ramp_half_bytes", 1024.0 * 1024, "B", published_collectives,
                                   calibrated};
    Constant network_ramp_s{"network_ramp_s", 60e-6, "s", published_collectives, calibrated};
    Constant network_ramp_bytes{"network_ramp_half_bytes", 16 * 1024.0 * 1024, "B", published_collectives,
                                calibrated};
    Constant local_payload{"collective_share_of_link", 0.97, "1", published_collectives, calibrated};
    Constant network_payload{"collective_share_of_network", 0.9, "1", published_collectives, calibrated};
    Constant efa_hop_s{
        "efa_hop_s", 40e-6, "s",
        "libfabric over EFA beyond InfiniBand, a network hop: AWS's nccl-tests tables of p4d and "
        "p5",
        calibrated};
    Constant omni_path_efficiency{"omni_path_efficiency", 0.2356, "1",
                                  "NCCL without GPUDirect RDMA: bigscience's all_reduce_bench on Jean Zay, "
                                  "10.6 of 50 GB/s a node, by collective_share_of_network",
                                  calibrated};
    Constant blocks_per_multiprocessor{
        "collective_blocks_per_multiprocessor", 1, "1",
        "NVIDIA/nccl#689: one thread block a channel, which shares its multiprocessor with no other kernel",
        exact_rule};
    Constant gather_memory_accesses{"gather_memory_accesses", 2, "1",
                                    "of a byte that reaches a GPU: read there or at the sender, and written "
                                    "(NCCL's primitives.h, copies)",
                                    assumption};
    Constant reduce_memory_accesses{
        "reduce_memory_accesses", 3, "1",
        "of a byte that a ring reduces: written to a buffer, read from it, and the GPU's own read beside it",
        assumption};
    Constant host_barrier_s{"host_barrier_s", 20e-6, "s", "two barriers between processes over shared memory",
                            assumption};

    IntervalEnd low_end{
        {"interval_low_products", 0.9, "1", "clocks and shapes that suit the kernels", assumption},
        {"interval_low_attention", 0.6, "1", "FlashAttention-3 on Hopper: 1.5 to 2 times as fast (its paper)",
         assumption},
        {"interval_low_memory_bound", 0.9, "1", "0.93 of the memory's rate instead of 0.85", assumption},
        {"interval_low_communication", 0.9, "1", "collective durations of the interval's low end",
         assumption},
        {"interval_low_offload", 0.8, "1", "copies at PCIe's full rate", assumption}};
    IntervalEnd high_end{
        {"interval_high_products", 1.25, "1", "power limits, small batches, shapes between kernels",
         assumption},
        {"interval_high_attention", 2, "1",
         "FlashAttention-1 and Triton kernels reach half of FlashAttention-2 (its paper)", assumption},
        {"interval_high_memory_bound", 2, "1",
         "kernels that are not fused, casts to fp32 and metrics of the training loop", assumption},
        {"interval_high_communication", 1.5, "1",
         "NCCL's own law is 4.6 % from measured at 1 GiB and up to 2 times below it at 64 MiB", assumption},
        {"interval_high_offload", 2, "1",
         "the other socket's memory, GPUs that share a PCIe switch, cores that the loader uses", assumption}};
};

/// The built-in ones with those that `calibration` names replaced. Lives as long as the program.
const Constants& constants(const Calibration& calibration);
/// Every one of them but the interval's ends.
std::vector<Constant*> all(Constants& constants);

}  // namespace zeroplan::cost
