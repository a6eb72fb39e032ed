#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "zeroplan/collective_cost.hpp"
#include "zeroplan/contention.hpp"
#include "zeroplan/cost_model.hpp"
#include "zeroplan/plan.hpp"
#include "zeroplan/step_program.hpp"
#include "zeroplan/step_timeline.hpp"

namespace zeroplan {

/// What the closed form and the simulation both execute: a steady step as nodes with durations or
/// collectives and what they wait for. Allocations and everything that waits for nothing new are gone, and
/// operations that always follow each other on a stream are one node.

/// Streams of a rank and, last, its host thread: each runs its nodes one after the other.
inline constexpr std::size_t lane_count = stream_count + 1;
inline constexpr std::size_t host_lane = stream_count;

inline constexpr std::uint32_t no_node = 0xffffffffU;
/// In TimedNode::after[host_lane]: the host as it was when the section began.
inline constexpr std::uint32_t host_at_start = 0xfffffffeU;
inline constexpr std::uint32_t no_collective = 0xffffffffU;
inline constexpr std::uint32_t no_channel = 0xffffffffU;

/// By lane, nodes to wait for.
using NodeWaits = std::array<std::uint32_t, lane_count>;
constexpr NodeWaits no_waits() {
    NodeWaits waits{};
    waits.fill(no_node);
    return waits;
}

enum class TransferSide : std::uint8_t { none, send, receive };

/// True for the lanes on which the device computes or communicates.
constexpr bool is_device_lane(std::size_t lane) {
    return lane < stream_count && !is_offload(static_cast<Stream>(lane));
}

/// Starts when the lane's previous node and the nodes in `after` have ended.
struct TimedNode {
    std::uint8_t lane = 0;
    std::uint32_t collective = no_collective;  ///< index into TimedProgram::collectives
    /// Alone: of a collective, on its links, of work on the GPU, beside no collective.
    double seconds = 0;
    double multiprocessor_s = 0, memory_s = 0;  ///< as WorkTime has them; of work on the GPU
    NodeWaits after = no_waits();  ///< of the same section; no_node where there is nothing to wait for
    /// A receive lasts no time of its own: it also waits for the send of its number on the channel, which is
    /// another program's node.
    TransferSide transfer = TransferSide::none;
    std::uint32_t channel = no_channel;
    WorkTime work() const { return {seconds, multiprocessor_s, memory_s}; }
    void set_work(const WorkTime& work) {
        seconds = work.seconds;
        multiprocessor_s = work.multiprocessor_s;
        memory_s = work.memory_s;
    }
    friend bool operator==(const TimedNode&, const TimedNode&) = default;
};

/// One operation inside a node, seconds from the node's start if it runs alone.
struct TimedItem {
    OperationId operation = 0;
    std::uint32_t node = 0;
    double begin_s = 0, end_s = 0;  ///< of a collective, end_s is its duration alone
    friend bool operator==(const TimedItem&, const TimedItem&) = default;
};

struct TimedSection {
    std::uint64_t repeat = 1;
    std::vector<TimedNode> nodes;  ///< in an order in which everything waited for comes first
    std::vector<TimedItem> items;  ///< operations on streams, in issue order
    friend bool operator==(const TimedSection&, const TimedSection&) = default;
};

/// A collective and the communicator that runs it.
struct TimedCollective {
    GroupKind group = GroupKind::shard_group;
    CollectiveKind kind = CollectiveKind::all_gather;
    CollectiveCost cost;
    friend bool operator==(const TimedCollective&, const TimedCollective&) = default;
};

struct TimedProgram {
    std::vector<TimedCollective> collectives;  ///< each different one once
    std::vector<TimedSection> sections;
    GpuCapacity gpu;  ///< of each rank
    friend bool operator==(const TimedProgram&, const TimedProgram&) = default;
};

/// Times StepProgram::step of program `program`, its work at `scale`. Throws what CostModel and
/// collective_cost throw.
TimedProgram time_program(const Plan& plan, std::uint32_t program, const WorkScale& scale = {});
/// The same for every program of the plan.
std::vector<TimedProgram> time_programs(const Plan& plan);
/// time_program()'s result at `scale` from that at none: what waits for what stays.
TimedProgram at_scale(TimedProgram timed, const Plan& plan, std::uint32_t program, const WorkScale& scale);

/// Start and end of one node, seconds from the step's start.
struct NodeTime {
    double start_s = 0, end_s = 0;
    friend bool operator==(const NodeTime&, const NodeTime&) = default;
};
/// One entry for every run of every node: by section, repetition, node.
using NodeTimes = std::vector<NodeTime>;

/// When every node starts and ends if no two collectives share a link; programs meet in their transfers and
/// in the sums over the embedding group alone. Throws Error{run_failed} if they wait for each other for ever.
///
/// communication_scale  factor on the durations of collectives, for the ends of the interval; that of work is
///                      time_program()'s
std::vector<NodeTimes> closed_form_times(const std::vector<TimedProgram>& programs,
                                         double communication_scale = 1);
NodeTimes closed_form_times(const TimedProgram& program, double communication_scale = 1);
/// Programs that run side by side, their work at a scale.
using TimedAt = std::function<std::vector<TimedProgram>(const WorkScale&)>;
/// Their steps, with the interval of the slowest, in proportion.
std::vector<StepTimeline> closed_form_steps(const TimedAt& timed);

/// True if the programs are stages of a pipeline: transfers join them, and the sums over the embedding group;
/// their other collectives stay inside a stage.
bool is_pipeline(const std::vector<TimedProgram>& programs);

/// Whatever can execute programs that run side by side on the ranks of several rank groups.
using StepExecutor = std::function<std::vector<NodeTimes>(const std::vector<TimedProgram>&)>;

/// The step of each program as `execute` sees it. A section that repeats more often than `repeat_limit` is
/// executed that often and one time less, and continued in a straight line: its repetitions are alike once
/// the streams have filled. In a pipeline the stages are shortened by the same number, so that their
/// transfers still pair. The time line then lists its first repeat_limit − 1 iterations and the last.
/// Leaves fidelity and the interval to the caller.
std::vector<StepTimeline> time_steps(const std::vector<TimedProgram>& programs, const StepExecutor& execute);
inline constexpr std::uint64_t repeat_limit = 16;
/// The programs with no section repeated more often than that, as they are executed.
std::vector<TimedProgram> shortened(const std::vector<TimedProgram>& programs);

}  // namespace zeroplan
