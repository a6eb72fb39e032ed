#include "cost/constants.hpp"

#include <map>
#include <mutex>

#include <fmt/format.h>

#include "zeroplan/cost_model.hpp"

namespace zeroplan {
namespace cost {

std::vector<Constant*> all(Constants& c) {
    std::vector<Constant*> list;
    for (auto* by_generation :
         {&c.gemm_efficiency, &c.attention_forward_efficiency, &c.attention_backward_efficiency})
        for (Constant& constant : *by_generation) list.push_back(&constant);
    for (Constant* constant : {&c.host_gemm_efficiency,
                               &c.causal_attention_share,
                               &c.memory_efficiency,
                               &c.kernel_start_s,
                               &c.host_call_s,
                               &c.upload_efficiency,
                               &c.nvlink2_efficiency,
                               &c.nvlink3_efficiency,
                               &c.nvlink4_efficiency,
                               &c.nvlink5_efficiency,
                               &c.pcie_efficiency,
                               &c.pcie_staging_efficiency,
                               &c.xgmi_efficiency,
                               &c.host_barrier_s,
                               &c.bridge_bytes_per_s,
                               &c.small_bridge_bytes_per_s,
                               &c.collective_start_s,
                               &c.collective_ramp_s,
                               &c.collective_ramp_bytes,
                               &c.network_ramp_s,
                               &c.network_ramp_bytes,
                               &c.efa_hop_s,
                               &c.omni_path_efficiency,
                               &c.local_payload,
                               &c.network_payload,
                               &c.product_tile,
                               &c.product_fill_depth,
                               &c.power_exponent,
                               &c.pageable_share,
                               &c.host_memory_efficiency,
                               &c.host_step_efficiency,
                               &c.host_core_bytes_per_s,
                               &c.unfused_host_step,
                               &c.blocks_per_multiprocessor,
                               &c.gather_memory_accesses,
                               &c.reduce_memory_accesses})
        list.push_back(constant);
    return list;
}

namespace {

Constants replaced(const Calibration& calibration) {
    Constants result;
    for (Constant* constant : all(result)) {
        const auto found = calibration.constants.find(constant->name);
        if (found == calibration.constants.end()) continue;
        constant->value = found->second;
        constant->source = fmt::format("calibration {}", calibration.source);
        constant->kind = calibrated;
    }
    return result;
}

}  // namespace

const Constants& constants(const Calibration& calibration) {
    static const Constants built_in;
    if (calibration.constants.empty()) return built_in;
    // A process sees few calibrations, and what was handed out must stay where it is.
    static std::mutex mutex;
    static std::map<std::pair<std::string, std::map<std::string, double>>, Constants> known;
    const std::lock_guard lock(mutex);
    const auto [entry, is_new] = known.try_emplace({calibration.source, calibration.constants});
    if (is_new) entry->second = replaced(calibration);
    return entry->second;
}

}  // namespace cost

std::vector<Constant> cost_constants(const Calibration& calibration) {
    cost::Constants c = cost::constants(calibration);
    std::vector<Constant> list;
    for (const Constant* constant : cost::all(c)) list.push_back(*constant);
    for (const cost::IntervalEnd* end : {&c.low_end, &c.high_end})
        list.insert(list.end(),
                    {end->products, end->attention, end->memory, end->communication, end->offload});
    return list;
}

}  // namespace zeroplan
