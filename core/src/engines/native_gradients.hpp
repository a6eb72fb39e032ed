#pragma once
#include <cstdint>
#include <deque>
#include <vector>

#include "engines/native_rank.hpp"
#include "engines/program_builder.hpp"

namespace zeroplan {

/// How gradients get from backward to the optimizer; decided by stage, synchronisation and micro-batches.
struct GradientPlan {
    bool bucketed = false;       ///< backward writes into a unit-sized buffer that is reduced at once
    bool full_resident = false;  ///< every rank keeps a unit's whole gradient between steps
};
GradientPlan gradient_plan(const TrainingConfig& training);

/// Our own engine's gradients: summed where backward produces them, or reduced bucket by bucket.
class NativeGradients {
public:
    using UnitIndex = NativeRank::UnitIndex;

    NativeGradients(NativeRank& rank, ProgramBuilder& builder);

    const GradientPlan& plan() const { return plan_; }
    std::uint64_t resident(UnitIndex unit) const {
        return plan_.full_resident ? rank_.whole(unit) : rank_.owned(unit);
    }
    /// `last`: of the step.
    void begin_micro_batch(bool last);
    void begin_backward() { tied_written_.assign(rank_.unit_count(), false); }
    void end_backward();

    /// Where backward writes a unit's gradients.
    BufferId target(UnitIndex unit) const;
    /// Whether backward adds a parameter's gradient to what is there.
    bool adds(std::uint32_t parameter) const;
    /// Makes the buckets that a unit's backward writes into.
    void prepare(UnitIndex unit);
    void reduce_after_backward(UnitIndex unit);
    /// Stage 1 without buckets reduces once, when all gradients are there.
    void reduce_before_step();

private:
    struct Bucket {
        UnitIndex unit = 0;
        BufferId buffer = no_buffer;
        std::vector<OperationId> events;  ///< the last operation that uses it, once issued
    };

    void free_oldest_bucket();
    OperationId reduce_in_place(UnitIndex unit, BufferId buffer, std::vector<OperationId> waits);
    void reduce_bucket(Bucket& bucket, const std::vector<OperationId>& produced);

    NativeRank& rank_;
    ProgramBuilder& builder_;
    GradientPlan plan_;
    std::deque<Bucket> buckets_;
    std::vector<bool> tied_;          ///< by parameter: a later unit uses it too
    std::vector<bool> tied_written_;  ///< units whose gradients this micro-batch has contributed to already
    bool last_micro_batch_ = false;
};

}  // namespace zeroplan
