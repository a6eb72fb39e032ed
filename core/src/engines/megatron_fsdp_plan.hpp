#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "engines/megatron_options.hpp"
#include "zeroplan/scenario.hpp"

namespace zeroplan {

/// How Megatron-FSDP keeps parameters, gradients and optimizer states, resolved from the scenario.
/// source: megatron/core/distributed/fsdp/src/megatron_fsdp/param_and_grad_buffer.py
/// (_init_each_parameter_group_buffers).
struct MegatronFsdpPlan {
    std::uint64_t shards = 1, expert_shards = 1;  ///< ranks that share dense and expert parameters
    bool replicated = false;                      ///< shards are reduced over replicas as well (HSDP)
    bool shards_parameters = false, shards_gradients = false, shards_states = false;
    DType parameters = DType::bf16, gradients = DType::fp32, reduced = DType::fp32;
    std::optional<DType> master;          ///< nullopt: the parameters are the master
    std::optional<DType> main_gradients;  ///< gradients cast for the optimizer, from its step to the next
    std::vector<DType> states;            ///< one tensor each
    bool overlaps_reduce = false, overlaps_gather = false;
    std::optional<std::uint64_t> bucket_size;   ///< elements, of the first chunk
    std::uint64_t communication_unit_size = 0;  ///< elements
    bool double_buffers = false;
};

/// `average_unit`: mean elements of an FSDP unit on the stage. Throws Error{not_supported} for experts with
/// replicas and for layers that are recomputed together.
MegatronFsdpPlan megatron_fsdp_plan(const Scenario& scenario, const MegatronOptions& options,
                                    std::uint64_t average_unit);

}  // namespace zeroplan
