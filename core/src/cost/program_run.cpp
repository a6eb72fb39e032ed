#include "cost/program_run.hpp"

#include <algorithm>

namespace zeroplan {

namespace {

bool meets_others(const TimedProgram& program, const TimedNode& node) {
    return node.collective != no_collective && node.transfer == TransferSide::none &&
           program.collectives[node.collective].group == GroupKind::embedding_group;
}

}  // namespace

Meetings meetings_of(const std::vector<TimedProgram>& programs) {
    Meetings meetings;
    for (const TimedProgram& program : programs)
        for (const TimedSection& section : program.sections)
            for (const TimedNode& node : section.nodes) {
                if (node.transfer == TransferSide::send) meetings.channels[node.channel][&program] = 0;
                if (meets_others(program, node)) meetings.embedding_sums[&program] = 0;
            }
    return meetings;
}

ProgramRun::ProgramRun(const TimedProgram& program, double communication_scale)
    : program_(program), communication_scale_(communication_scale) {
    std::uint32_t runs = 0, host_before = no_run;
    for (const TimedSection& section : program.sections) {
        SectionRuns& of = sections_.emplace_back();
        of.first = runs;
        of.host_before = host_before;
        for (std::uint32_t n = 0; n < section.nodes.size(); ++n) of.nodes[section.nodes[n].lane].push_back(n);
        const auto nodes = static_cast<std::uint32_t>(section.nodes.size());
        runs += nodes * static_cast<std::uint32_t>(section.repeat);
        if (!of.nodes[host_lane].empty() && section.repeat > 0)
            host_before = runs - nodes + of.nodes[host_lane].back();
    }
    for (const TimedCollective& collective : program.collectives)
        shares_.push_back(
            shares_of(collective.cost, collective.cost.seconds() * communication_scale, program.gpu));
    times_.assign(runs, {0, -1});
    for (std::size_t number = 0; number < lane_count; ++number) enter_section(lanes_[number], number);
}

void ProgramRun::alone() {
    Meetings nobody;
    start(nobody);
    while (next_end_s_ != never) finish_next(nobody);
}

bool ProgramRun::finish_next(Meetings& meetings) {
    const double now = next_end_s_;
    others_may_go_on_ = false;
    end(lanes_[next_lane_], next_lane_, now, meetings);
    go_on(now, meetings);
    return others_may_go_on_;
}

bool ProgramRun::look_up(double now, Meetings& meetings) {
    const auto waits_for_others = [](const Lane& lane) {
        return lane.state == LaneState::receives || lane.state == LaneState::meets;
    };
    others_may_go_on_ = false;
    if (std::any_of(lanes_.begin(), lanes_.end(), waits_for_others)) go_on(now, meetings);
    return others_may_go_on_;
}

/// The lane's next section that has nodes for it.
void ProgramRun::enter_section(Lane& lane, std::size_t number) {
    while (lane.section < sections_.size() &&
           (sections_[lane.section].nodes[number].empty() || program_.sections[lane.section].repeat == 0))
        ++lane.section;
    lane.iteration = 0;
    lane.position = 0;
    if (lane.section == sections_.size()) {
        lane.state = LaneState::done;
        return;
    }
    to_next_node(lane, number);
}

void ProgramRun::to_next_node(Lane& lane, std::size_t number) {
    const std::vector<std::uint32_t>& nodes = sections_[lane.section].nodes[number];
    if (lane.position == nodes.size()) {
        lane.position = 0;
        if (++lane.iteration == program_.sections[lane.section].repeat) {
            ++lane.section;
            return enter_section(lane, number);
        }
    }
    const std::uint32_t node = nodes[lane.position];
    lane.node = &program_.sections[lane.section].nodes[node];
    lane.run = run_of(lane, node);
    lane.state = LaneState::waits;
    lane.waits_for = awaited(lane);
}

std::uint32_t ProgramRun::run_of(const Lane& lane, std::uint32_t node) const {
    const std::size_t nodes = program_.sections[lane.section].nodes.size();
    return sections_[lane.section].first + static_cast<std::uint32_t>(lane.iteration * nodes) + node;
}

std::uint32_t ProgramRun::awaited(const Lane& lane) const {
    for (const std::uint32_t wait : lane.node->after) {
        if (wait == no_node) continue;
        std::uint32_t run;
        if (wait != host_at_start) {
            run = run_of(lane, wait);
        } else if (const auto& host = sections_[lane.section].nodes[host_lane];
                   lane.iteration > 0 && !host.empty()) {
            run = run_of(lane, host.back()) -
                  static_cast<std::uint32_t>(program_.sections[lane.section].nodes.size());
        } else {
            run = sections_[lane.section].host_before;
        }
        if (!has_ended(run)) return run;
    }
    return no_run;
}

bool ProgramRun::is_sent(const TimedNode& receive, const Meetings& meetings) const {
    const auto channel = meetings.channels.find(receive.channel);
    if (channel == meetings.channels.end()) return false;
    const auto received = received_.find(receive.channel);
    const std::size_t message = received == received_.end() ? 0 : received->second;
    return std::all_of(channel->second.begin(), channel->second.end(),
                       [message](const auto& sender) { return sender.second > message; });
}

/// Comes to the meeting itself the first time.
bool ProgramRun::all_are_there(Lane& lane, Meetings& meetings) {
    if (meetings.embedding_sums.empty()) return true;  // the program runs alone
    std::size_t& sums = meetings.embedding_sums[&program_];
    if (lane.state != LaneState::meets) {
        lane.state = LaneState::meets;
        ++sums;
        others_may_go_on_ = true;
    }
    return std::all_of(meetings.embedding_sums.begin(), meetings.embedding_sums.end(),
                       [&sums](const auto& other) { return other.second >= sums; });
}

void ProgramRun::go_on(double now, Meetings& meetings) {
    for (bool again = true; again;) {
        again = false;
        for (std::size_t number = 0; number < lane_count; ++number) {
            Lane& lane = lanes_[number];
            while (can_start(lane, meetings)) {
                begin(lane, now);
                if (lane.end_s > now) break;
                end(lane, number, now, meetings);
                again = true;
            }
        }
    }
    set_speeds(now);
}

bool ProgramRun::can_start(Lane& lane, Meetings& meetings) {
    if (lane.state == LaneState::runs || lane.state == LaneState::done) return false;
    if (!has_ended(lane.waits_for)) return false;
    lane.waits_for = awaited(lane);
    if (lane.waits_for != no_run) return false;
    if (meets_others(program_, *lane.node)) return all_are_there(lane, meetings);
    if (lane.node->transfer != TransferSide::receive) return true;
    lane.state = LaneState::receives;
    return is_sent(*lane.node, meetings);
}

void ProgramRun::begin(Lane& lane, double now) {
    const bool communicates = lane.node->collective != no_collective;
    lane.state = LaneState::runs;
    lane.since_s = now;
    lane.left_s = lane.node->seconds * (communicates ? communication_scale_ : 1);
    lane.slow_down = 1;
    lane.end_s = now + lane.left_s;
    times_[lane.run].start_s = now;
    if (lane.node->transfer == TransferSide::receive) ++received_[lane.node->channel];
}

void ProgramRun::end(Lane& lane, std::size_t number, double now, Meetings& meetings) {
    times_[lane.run].end_s = now;
    lane.end_s = never;
    if (lane.node->transfer == TransferSide::send) {
        ++meetings.channels[lane.node->channel][&program_];
        others_may_go_on_ = true;
    }
    ++ended_;
    ++lane.position;
    to_next_node(lane, number);
}

/// Summed anew, so that nothing of a collective is left over once it has ended.
GpuShares ProgramRun::taken() const {
    GpuShares sum;
    for (const Lane& lane : lanes_)
        if (lane.state == LaneState::runs && lane.node->collective != no_collective)
            sum.add(shares_[lane.node->collective]);
    return sum;
}

void ProgramRun::set_speeds(double now) {
    const GpuShares shares = taken();
    next_end_s_ = never;
    for (std::size_t number = 0; number < lane_count; ++number) {
        Lane& lane = lanes_[number];
        if (lane.state != LaneState::runs) continue;
        if (is_work(lane, number)) set_speed(lane, zeroplan::slow_down(lane.node->work(), shares), now);
        if (lane.end_s >= next_end_s_) continue;
        next_end_s_ = lane.end_s;
        next_lane_ = number;
    }
}

void ProgramRun::set_speed(Lane& lane, double slow_down, double now) {
    if (slow_down == lane.slow_down) return;
    lane.left_s -= (now - lane.since_s) / lane.slow_down;
    lane.since_s = now;
    lane.slow_down = slow_down;
    lane.end_s = now + std::max(0.0, lane.left_s) * slow_down;
}

}  // namespace zeroplan
