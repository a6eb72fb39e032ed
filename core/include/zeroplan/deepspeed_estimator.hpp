#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeroplan/plan.hpp"

namespace zeroplan {

/// What DeepSpeed's estimate_zero2_model_states_mem_needs and estimate_zero3_… are asked with.
struct EstimatorInput {
    std::uint64_t total_params = 0;          ///< tied weights once
    std::uint64_t largest_layer_params = 0;  ///< of the module with the most parameters of its own
    std::uint64_t gpus_per_node = 1, nodes = 1;
    double additional_buffer_factor = 1.5;
    friend bool operator==(const EstimatorInput&, const EstimatorInput&) = default;
};

/// A row of DeepSpeed's table. Stage 2 has neither parameter offload nor zero.Init.
struct EstimatorRow {
    std::uint32_t stage = 2;
    bool old_formula = false;  ///< stage 2 as it was before DeepSpeed's pull request 5099 (June 2024)
    bool offload_optimizer = false, offload_parameters = false, zero_init = false;
    Bytes cpu, gpu;  ///< of a node, of one GPU
    friend bool operator==(const EstimatorRow&, const EstimatorRow&) = default;
};

/// Every row of both stages in DeepSpeed's order, stage 2 by the old formula first.
///
/// source: deepspeed/runtime/zero/stage_1_and_2.py, stage3.py, …_all_cold(), and docs/…/memory.rst. Bytes a
/// parameter at stage 2: 2 in 16 bit on every GPU; divided 18 = 2 gradients in 16 bit, 4 in fp32, 4 master
/// weights, 8 Adam. At stage 3: 4 of the largest layer, its weights and gradients in 16 bit; divided 18 = 2
/// weights in 16 bit, 4 fp32 gradients, 4 master weights, 8 Adam. Products and their truncation are Python's,
/// in doubles.
std::vector<EstimatorRow> deepspeed_estimate(const EstimatorInput& input);

/// What a user of the scenario's model and cluster would ask the estimator.
EstimatorInput estimator_input(const Scenario& scenario);

/// One part of a GPU's memory in the estimate and in the plan.
struct EstimatorItem {
    std::string item;  ///< a category, "allocator_holes" or "runtime"
    Bytes estimated, planned;
    std::string why;  ///< why they differ or agree
    friend bool operator==(const EstimatorItem&, const EstimatorItem&) = default;
};

/// The estimate beside the plan.
struct EstimatorComparison {
    EstimatorInput input;
    std::vector<EstimatorRow> rows;
    std::optional<std::size_t> matching;  ///< the row that is asked for the plan's stage and offload
    std::string why_none;                 ///< why no row is
    std::vector<EstimatorItem> items;  ///< of the matching row: sum to its GPU figure and to the device peak
    friend bool operator==(const EstimatorComparison&, const EstimatorComparison&) = default;
};

EstimatorComparison against_deepspeed_estimator(const Plan& plan);

}  // namespace zeroplan
