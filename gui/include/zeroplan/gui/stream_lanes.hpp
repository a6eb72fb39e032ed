#pragma once
#include <array>
#include <memory>
#include <vector>

#include "zeroplan/gui/omitted.hpp"
#include "zeroplan/gui/text.hpp"
#include "zeroplan/plan.hpp"
#include "zeroplan/step_timeline.hpp"

namespace zeroplan::gui {

/// Consecutive operations of one stream that people see as one thing: the operators of one block in one
/// phase.
struct LaneGroup {
    std::size_t first = 0, last = 0;  ///< positions in the lane, both included
    double start_s = 0, end_s = 0;
    double busy_s = 0;  ///< sum of durations: less than end − start where the stream waited in between
};

/// One stream's operations in order, and the groups they form.
struct Lane {
    std::vector<TimedOperation> operations;
    std::vector<LaneGroup> groups;
};

/// A timed step split by stream, with the plan that names its operations.
class StreamLanes {
public:
    StreamLanes() = default;
    StreamLanes(std::shared_ptr<const Plan> plan, std::uint32_t rank_group, const StepTimeline& timeline);

    bool empty() const { return end_s_ <= 0; }
    double end_s() const { return end_s_; }
    std::size_t operation_count() const;
    const std::vector<Omitted>& omitted() const { return omitted_; }
    /// "13 more × micro-batch"
    QString omitted_label(const Omitted& omitted) const;
    const Lane& lane(Stream stream) const { return lanes_[static_cast<std::size_t>(stream)]; }
    const Operation& operation(const TimedOperation& timed) const;
    /// The sections of the step, each once.
    const std::vector<Section>& step() const { return program().step; }
    /// The longest operation of `stream` that runs within [begin, end] seconds.
    const TimedOperation* longest_within(Stream stream, double begin, double end) const;

    /// "forward model.layers.3", from long to short: the first that fits is drawn.
    std::vector<QString> group_labels(Stream stream, const LaneGroup& group) const;
    QString operation_label(const TimedOperation& timed) const;
    Description describe_operation(const TimedOperation& timed) const;

private:
    const StepProgram& program() const;
    const ModelSpec& model() const;
    const ShardLayout& layout() const;

    std::shared_ptr<const Plan> plan_;
    std::uint32_t rank_group_ = 0;
    std::array<Lane, stream_count> lanes_;
    std::vector<Omitted> omitted_;
    double end_s_ = 0;
};

}  // namespace zeroplan::gui
