#include "cost/constants.hpp"

#include "zeroplan/cost_model.hpp"

namespace zeroplan {

const cost::Constants& cost::constants() {
    static const Constants values;
    return values;
}

std::vector<Constant> cost_constants() {
    const cost::Constants& c = cost::constants();
    std::vector<Constant> all{c.host_gemm_efficiency,  c.causal_attention_share,
                              c.memory_efficiency,     c.kernel_start_s,
                              c.host_call_s,           c.upload_efficiency,
                              c.nvlink2_efficiency,    c.nvlink3_efficiency,
                              c.nvlink4_efficiency,    c.nvlink5_efficiency,
                              c.pcie_efficiency,       c.pcie_staging_efficiency,
                              c.xgmi_efficiency,       c.host_barrier_s,
                              c.bridge_bytes_per_s,    c.small_bridge_bytes_per_s,
                              c.collective_start_s,    c.collective_ramp_s,
                              c.collective_ramp_bytes, c.network_ramp_s,
                              c.network_ramp_bytes,    c.efa_hop_s,
                              c.omni_path_efficiency,  c.local_payload,
                              c.network_payload,       c.product_tile,
                              c.product_fill_depth,    c.power_exponent};
    for (const auto* by_generation :
         {&c.attention_backward_efficiency, &c.attention_forward_efficiency, &c.gemm_efficiency})
        all.insert(all.begin(), by_generation->begin(), by_generation->end());
    for (const cost::IntervalEnd* end : {&c.low_end, &c.high_end})
        all.insert(all.end(), {end->products, end->attention, end->memory, end->communication});
    return all;
}

}  // namespace zeroplan
