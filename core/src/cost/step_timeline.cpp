#include "zeroplan/step_timeline.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include "zeroplan/timed_program.hpp"

namespace zeroplan {
namespace {

struct Interval {
    double start = 0, end = 0;
};
/// Intervals of each stream in order of time, as FIFO queues give them.
using StreamIntervals = std::array<std::vector<Interval>, stream_count>;

/// Time covered by at least one interval.
double covered(const StreamIntervals& streams) {
    std::array<std::size_t, stream_count> next{};
    double sum = 0, until = 0;
    for (;;) {
        const Interval* earliest = nullptr;
        std::size_t from = 0;
        for (std::size_t s = 0; s < stream_count; ++s) {
            if (next[s] == streams[s].size()) continue;
            const Interval& candidate = streams[s][next[s]];
            if (earliest == nullptr || candidate.start < earliest->start) {
                earliest = &candidate;
                from = s;
            }
        }
        if (earliest == nullptr) return sum;
        ++next[from];
        if (earliest->end <= until) continue;
        sum += earliest->end - std::max(earliest->start, until);
        until = earliest->end;
    }
}

/// Figures of a step that are sums over its nodes, and so grow by the same amount with every repetition.
struct Totals {
    double step = 0, compute = 0, communication = 0, offload = 0, slowed = 0;
    double busy = 0, busy_with_offload = 0;  ///< of the device; the same with copies and the host's work

    Totals& add(double factor, const Totals& more, const Totals& less) {
        step += factor * (more.step - less.step);
        compute += factor * (more.compute - less.compute);
        communication += factor * (more.communication - less.communication);
        offload += factor * (more.offload - less.offload);
        slowed += factor * (more.slowed - less.slowed);
        busy += factor * (more.busy - less.busy);
        busy_with_offload += factor * (more.busy_with_offload - less.busy_with_offload);
        return *this;
    }
};

Totals totals(const TimedProgram& program, const NodeTimes& times) {
    StreamIntervals all, device, work;
    Totals result;
    std::size_t run = 0;
    for (const TimedSection& section : program.sections) {
        for (std::uint64_t iteration = 0; iteration < section.repeat; ++iteration) {
            for (const TimedNode& node : section.nodes) {
                const NodeTime& time = times[run++];
                result.step = std::max(result.step, time.end_s);
                if (node.lane == host_lane) continue;
                all[node.lane].push_back({time.start_s, time.end_s});
                if (!is_device_lane(node.lane)) {
                    result.offload += time.end_s - time.start_s;
                    continue;
                }
                device[node.lane].push_back({time.start_s, time.end_s});
                if (node.collective != no_collective) {
                    result.communication += time.end_s - time.start_s;
                    continue;
                }
                work[node.lane].push_back({time.start_s, time.end_s});
                result.slowed += time.end_s - time.start_s - node.seconds;
            }
        }
    }
    result.compute = covered(work);
    result.busy = covered(device);
    result.busy_with_offload = covered(all);
    return result;
}

/// Repetitions that every stage of a pipeline can leave out: none where a stage has too few of its own.
std::uint64_t common_excess(const std::vector<TimedProgram>& programs) {
    std::uint64_t fewest = std::numeric_limits<std::uint64_t>::max();
    for (const TimedProgram& program : programs) {
        std::uint64_t most = 0;
        for (const TimedSection& section : program.sections) most = std::max(most, section.repeat);
        fewest = std::min(fewest, most);
    }
    return fewest > repeat_limit ? fewest - repeat_limit : 0;
}

/// By program and section: how many repetitions are left out.
using Excess = std::vector<std::vector<std::uint64_t>>;

Excess excess_of(const std::vector<TimedProgram>& programs) {
    const bool pipeline = is_pipeline(programs);
    const std::uint64_t common = pipeline ? common_excess(programs) : 0;
    Excess excess;
    for (const TimedProgram& program : programs) {
        std::vector<std::uint64_t>& of_sections = excess.emplace_back();
        for (const TimedSection& section : program.sections) {
            const std::uint64_t own = section.repeat > repeat_limit ? section.repeat - repeat_limit : 0;
            of_sections.push_back(pipeline ? (section.repeat > 1 ? common : 0) : own);
        }
    }
    return excess;
}

constexpr std::size_t no_section = static_cast<std::size_t>(-1);

/// The programs as they are executed, with one repetition less of section `one_less`.
std::vector<TimedProgram> limited(const std::vector<TimedProgram>& programs, const Excess& excess,
                                  std::size_t one_less) {
    std::vector<TimedProgram> result = programs;
    for (std::size_t p = 0; p < programs.size(); ++p)
        for (std::size_t s = 0; s < programs[p].sections.size(); ++s)
            if (excess[p][s] > 0) result[p].sections[s].repeat -= excess[p][s] + (s == one_less ? 1 : 0);
    return result;
}

class TimelineBuilder {
public:
    TimelineBuilder(const TimedProgram& full, const TimedProgram& executed, const NodeTimes& times)
        : full_(full), executed_(executed), times_(times), totals_(totals(executed, times)) {}

    /// `shorter` ran one iteration of `section` less.
    void extend(std::size_t section, const TimedProgram& shorter, const NodeTimes& times) {
        const Totals less = totals(shorter, times);
        const auto missing =
            static_cast<double>(full_.sections[section].repeat - executed_.sections[section].repeat);
        shift_.resize(full_.sections.size(), 0);
        shift_[section] = missing * (totals_.step - less.step);
        growth_.add(missing, totals_, less);
    }

    StepTimeline build() {
        Totals sum = totals_;
        sum.add(1, growth_, {});
        StepTimeline timeline;
        timeline.operations = operations();
        timeline.step_time_s = sum.step;
        timeline.compute_s = sum.compute;
        timeline.communication_s = sum.communication;
        timeline.exposed_communication_s = std::max(0.0, sum.busy - sum.compute);
        timeline.offload_s = sum.offload;
        timeline.exposed_offload_s = std::max(0.0, sum.busy_with_offload - sum.busy);
        timeline.slowed_s = sum.slowed > rounding_share * sum.step ? sum.slowed : 0;
        timeline.bubble_s = std::max(0.0, sum.step - sum.busy_with_offload);
        return timeline;
    }

private:
    std::vector<TimedOperation> operations() const {
        std::vector<TimedOperation> result;
        std::size_t count = 0;
        for (const TimedSection& section : executed_.sections) count += section.items.size() * section.repeat;
        result.reserve(count);
        std::size_t first_run = 0;
        double shift = 0;
        for (std::uint32_t s = 0; s < executed_.sections.size(); ++s) {
            const TimedSection& section = executed_.sections[s];
            for (std::uint64_t iteration = 0; iteration < section.repeat; ++iteration) {
                const bool last = iteration + 1 == section.repeat;
                if (last && !shift_.empty()) shift += shift_[s];
                const std::uint64_t number = last ? full_.sections[s].repeat - 1 : iteration;
                for (const TimedItem& item : section.items)
                    result.push_back(place(s, number, section, item, times_[first_run + item.node], shift));
                first_run += section.nodes.size();
            }
        }
        return result;
    }

    static TimedOperation place(std::uint32_t s, std::uint64_t iteration, const TimedSection& section,
                                const TimedItem& item, const NodeTime& time, double shift) {
        const TimedNode& node = section.nodes[item.node];
        const bool whole = node.collective != no_collective || !(node.seconds > 0);
        // A node's operations share out what it was slowed down by, wherever in it the collectives ran.
        const double longer = whole ? 1 : (time.end_s - time.start_s) / node.seconds;
        return {.section = s,
                .iteration = iteration,
                .operation = item.operation,
                .stream = static_cast<Stream>(node.lane),
                .start_s = shift + time.start_s + (whole ? 0 : item.begin_s * longer),
                .end_s = shift + (whole || item.end_s == node.seconds ? time.end_s
                                                                      : time.start_s + item.end_s * longer)};
    }

    const TimedProgram& full_;
    const TimedProgram& executed_;
    const NodeTimes& times_;
    Totals totals_, growth_;
    std::vector<double> shift_;
};

}  // namespace

bool is_pipeline(const std::vector<TimedProgram>& programs) {
    for (const TimedProgram& program : programs)
        for (const TimedSection& section : program.sections)
            for (const TimedNode& node : section.nodes)
                if (node.transfer != TransferSide::none) return true;
    return false;
}

std::vector<TimedProgram> shortened(const std::vector<TimedProgram>& programs) {
    return limited(programs, excess_of(programs), no_section);
}

std::vector<StepTimeline> time_steps(const std::vector<TimedProgram>& programs, const StepExecutor& execute) {
    const Excess excess = excess_of(programs);
    const std::vector<TimedProgram> executed = limited(programs, excess, no_section);
    const std::vector<NodeTimes> times = execute(executed);
    std::vector<TimelineBuilder> builders;
    std::size_t sections = 0;
    for (std::size_t p = 0; p < programs.size(); ++p) {
        builders.emplace_back(programs[p], executed[p], times[p]);
        sections = std::max(sections, programs[p].sections.size());
    }
    for (std::size_t s = 0; s < sections; ++s) {
        const auto is_long = [s](const std::vector<std::uint64_t>& of_sections) {
            return s < of_sections.size() && of_sections[s] > 0;
        };
        if (std::none_of(excess.begin(), excess.end(), is_long)) continue;
        const std::vector<TimedProgram> shorter = limited(programs, excess, s);
        const std::vector<NodeTimes> shorter_times = execute(shorter);
        for (std::size_t p = 0; p < programs.size(); ++p)
            if (is_long(excess[p])) builders[p].extend(s, shorter[p], shorter_times[p]);
    }
    std::vector<StepTimeline> timelines;
    for (TimelineBuilder& builder : builders) timelines.push_back(builder.build());
    return timelines;
}

}  // namespace zeroplan
