#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeroplan/plan.hpp"

namespace zeroplan {

/// How an ingredient of the peak changes when twice as many ranks share the state.
enum class Scaling : std::uint8_t {
    divided,         ///< halves: every rank holds its share
    partly_divided,  ///< some of it does
    constant,        ///< every rank holds all of it
    grows
};
std::string_view to_string(Scaling scaling);

/// One ingredient of the peak that decides: a category, "allocator_holes" or "runtime".
struct IngredientScaling {
    std::string ingredient;
    Bytes bytes;
    std::optional<Bytes> on_twice;  ///< the same with twice the ranks; none where that can't be planned
    Bytes divided;  ///< of `bytes`: what shrinks with the ranks, twice what is lost on twice as many
    Scaling scaling = Scaling::constant;
    friend bool operator==(const IngredientScaling&, const IngredientScaling&) = default;
};

/// Live buffers that differ only in the number of their layer.
struct LiveTensors {
    std::string name;  ///< "model.layers.0-31 mlp.gate"
    std::string role;  ///< "activation"
    Category category = Category::activations;
    DType dtype = DType::fp32;
    std::uint64_t count = 0;
    Bytes largest, total;  ///< each buffer rounded up to 512 B
    friend bool operator==(const LiveTensors&, const LiveTensors&) = default;
};

/// What the peak that decides consists of, tensor by tensor, and what more ranks would do to it.
struct Explanation {
    std::uint64_t ranks =
        1;  ///< that share the state: the shard group, or all data-parallel ranks at stage 0
    std::vector<IngredientScaling> ingredients;  ///< those that are not 0; sum to the device peak
    std::optional<Bytes> device_on_twice;        ///< of the plan with twice the ranks
    std::string why_not_twice;                   ///< why there is no such plan
    std::vector<RankRange> worst_ranks;          ///< whose peak it is
    std::vector<LiveTensors> live;               ///< largest first
    friend bool operator==(const Explanation&, const Explanation&) = default;
};

/// Explains the deciding peak of a plan. What more ranks do is found by planning the scenario again with
/// twice as many that share the state and as many replicas, and comparing the same operation of the step.
Explanation explain(const Plan& plan);

/// "0-3,7" of numbers in ascending order.
std::string number_ranges(const std::vector<std::uint64_t>& numbers);

}  // namespace zeroplan
