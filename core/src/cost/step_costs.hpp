#pragma once
#include <map>
#include <tuple>
#include <vector>

#include "zeroplan/cost_model.hpp"
#include "zeroplan/timed_program.hpp"

namespace zeroplan {

/// Costs of a plan's operations, each different one computed once: blocks of one kind cost the same.
class StepCosts {
public:
    StepCosts(const Plan& plan, std::uint32_t program, const WorkScale& scale = {});

    WorkTime time(const Compute& compute);
    WorkTime time(const OptimizerStep& step) const { return model_.cost(step).time(); }
    WorkTime time(const Accumulate& accumulate) const { return model_.cost(accumulate).time(); }
    WorkTime time(const HostCopy& copy) const { return {.seconds = model_.seconds(copy)}; }
    WorkTime time(const HostStep& step) const { return {.seconds = model_.seconds(step)}; }
    WorkTime time(const LoadBatch& load) const { return model_.cost(load).time(); }
    /// Index into collectives().
    std::uint32_t collective(const Collective& collective);
    std::uint32_t message(const Transfer& transfer);

    std::vector<TimedCollective> take_collectives() { return std::move(collectives_); }
    const CollectiveCost& collective_cost(std::uint32_t index) const { return collectives_[index].cost; }

private:
    const Plan& plan_;
    const ModelSpec& rank_model_;
    const ShardLayout& layout_;
    TrainingConfig training_;  ///< with the tokens that the program's ranks work on
    GroupSizes groups_;
    std::uint64_t stage_ranks_, first_rank_ = 0;  ///< of a pipeline stage
    CostModel model_;
    std::vector<std::vector<WorkTime>> compute_times_;  ///< by block kind; slot of operator and variant
    std::map<std::tuple<CollectiveKind, GroupKind, DType, std::uint64_t, bool>, std::uint32_t>
        collective_index_;
    std::map<std::tuple<DType, std::uint64_t, bool>, std::uint32_t> message_index_;
    std::vector<TimedCollective> collectives_;
};

}  // namespace zeroplan
