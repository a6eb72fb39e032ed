#include <algorithm>
#include <functional>
#include <map>

#include "cost/constants.hpp"
#include "zeroplan/error.hpp"
#include "zeroplan/step_timeline.hpp"
#include "zeroplan/timed_program.hpp"

namespace zeroplan {
namespace {

std::size_t node_runs(const TimedProgram& program) {
    std::size_t runs = 0;
    for (const TimedSection& section : program.sections) runs += section.nodes.size() * section.repeat;
    return runs;
}

/// Ends of the sends on a channel, in order, by the program that sends. Where ranks of one stage run
/// different programs, a message is taken to be there when the slowest of them has sent it.
using Channel = std::map<const TimedProgram*, std::vector<double>>;
using Channels = std::map<std::uint32_t, Channel>;

Channels channels_of(const std::vector<TimedProgram>& programs) {
    Channels channels;
    for (const TimedProgram& program : programs)
        for (const TimedSection& section : program.sections)
            for (const TimedNode& node : section.nodes)
                if (node.transfer == TransferSide::send) channels[node.channel][&program];
    return channels;
}

/// Runs one program node by node, as far as what it has to receive has been sent.
class ProgramRun {
public:
    ProgramRun(const TimedProgram& program, double communication_scale)
        : program_(program), communication_scale_(communication_scale) {
        times_.reserve(node_runs(program));
    }

    bool done() const { return section_ == program_.sections.size(); }
    /// Returns whether it came any further.
    bool advance(Channels& channels) {
        const std::size_t before = times_.size();
        while (!done() && run_section(channels)) {
        }
        return times_.size() > before || done();
    }
    NodeTimes take() { return std::move(times_); }

private:
    /// False if the section stopped at a receive.
    bool run_section(Channels& channels) {
        const TimedSection& section = program_.sections[section_];
        for (; iteration_ < section.repeat; ++iteration_) {
            if (node_ == 0) {
                first_ = times_.size();
                host_start_ = lane_end_[host_lane];
            }
            for (; node_ < section.nodes.size(); ++node_)
                if (!run(section.nodes[node_], channels)) return false;
            node_ = 0;
        }
        iteration_ = 0;
        ++section_;
        return true;
    }

    bool run(const TimedNode& node, Channels& channels) {
        double start = lane_end_[node.lane];
        if (node.transfer == TransferSide::receive && !receive(node.channel, channels[node.channel], start))
            return false;
        for (const std::uint32_t wait : node.after) {
            if (wait == no_node) continue;
            start = std::max(start, wait == host_at_start ? host_start_ : times_[first_ + wait].end_s);
        }
        const bool communicates = node.collective != no_collective;
        lane_end_[node.lane] = start + node.seconds * (communicates ? communication_scale_ : 1);
        if (node.transfer == TransferSide::send)
            channels[node.channel][&program_].push_back(lane_end_[node.lane]);
        times_.push_back({start, lane_end_[node.lane]});
        return true;
    }

    bool receive(std::uint32_t number, const Channel& channel, double& start) {
        const std::size_t message = received_[number];
        if (channel.empty()) return false;
        for (const auto& [program, sent] : channel)
            if (sent.size() <= message) return false;
        for (const auto& [program, sent] : channel) start = std::max(start, sent[message]);
        ++received_[number];
        return true;
    }

    const TimedProgram& program_;
    double communication_scale_;
    std::array<double, lane_count> lane_end_{};
    std::map<std::uint32_t, std::size_t> received_;  ///< messages, by channel
    double host_start_ = 0;
    std::size_t section_ = 0, node_ = 0, first_ = 0;
    std::uint64_t iteration_ = 0;
    NodeTimes times_;
};

double slowest(const std::vector<StepTimeline>& timelines) {
    double seconds = 0;
    for (const StepTimeline& step : timelines) seconds = std::max(seconds, step.step_time_s);
    return seconds;
}

/// One end of the interval.
double slowest_at(const cost::IntervalEnd& end, const TimedAt& timed) {
    const WorkScale work{end.products.value, end.attention.value, end.memory.value, end.offload.value};
    return slowest(time_steps(timed(work), [&end](const std::vector<TimedProgram>& programs) {
        return closed_form_times(programs, end.communication.value);
    }));
}

}  // namespace

std::vector<NodeTimes> closed_form_times(const std::vector<TimedProgram>& programs,
                                         double communication_scale) {
    std::vector<ProgramRun> runs;
    runs.reserve(programs.size());
    for (const TimedProgram& program : programs) runs.emplace_back(program, communication_scale);
    Channels channels = channels_of(programs);
    for (bool further = true; further;) {
        further = false;
        for (ProgramRun& run : runs)
            if (!run.done()) further = run.advance(channels) || further;
    }
    std::vector<NodeTimes> times;
    for (ProgramRun& run : runs) {
        if (!run.done())
            throw Error(ErrorCode::run_failed, "the pipeline stages' programs wait for each other",
                        "this is a mistake of the program, not of the scenario");
        times.push_back(run.take());
    }
    return times;
}

NodeTimes closed_form_times(const TimedProgram& program, double communication_scale) {
    ProgramRun run(program, communication_scale);
    Channels channels;
    run.advance(channels);
    return run.take();
}

std::vector<StepTimeline> closed_form_steps(const TimedAt& timed) {
    const auto exact = [](const std::vector<TimedProgram>& programs) { return closed_form_times(programs); };
    std::vector<StepTimeline> timelines = time_steps(timed({}), exact);
    const double low = slowest_at(cost::constants({}).low_end, timed);
    const double high = slowest_at(cost::constants({}).high_end, timed);
    const double expected = slowest(timelines);
    for (StepTimeline& step : timelines) {
        const double share = expected > 0 ? step.step_time_s / expected : 0;
        step.low_s = low * share;
        step.high_s = high * share;
        step.fidelity = "closed form";
    }
    return timelines;
}

StepTimeline closed_form_step(const Plan& plan, std::uint32_t rank_group) {
    const std::uint32_t program = plan.rank_groups[rank_group].program;
    if (plan.scenario.training.pipeline_parallel > 1) return std::move(closed_form_steps(plan)[program]);
    const TimedProgram base = time_program(plan, program);
    const TimedAt timed = [&](const WorkScale& scale) {
        return std::vector<TimedProgram>{at_scale(base, plan, program, scale)};
    };
    return std::move(closed_form_steps(timed).front());
}

std::vector<StepTimeline> closed_form_steps(const Plan& plan) {
    const std::vector<TimedProgram> base = time_programs(plan);
    return closed_form_steps([&](const WorkScale& scale) {
        std::vector<TimedProgram> programs;
        for (std::uint32_t p = 0; p < base.size(); ++p) programs.push_back(at_scale(base[p], plan, p, scale));
        return programs;
    });
}

}  // namespace zeroplan
