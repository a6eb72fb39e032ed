#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "zeroplan/timed_program.hpp"

namespace zeroplan {

/// Messages sent so far on a channel, by the program that sends. Where ranks of one stage run different
/// programs, a message is taken to be there when the slowest of them has sent it.
using Channel = std::map<const TimedProgram*, std::size_t>;
/// Where programs wait for each other.
struct Meetings {
    std::map<std::uint32_t, Channel> channels;
    /// Sums over the embedding group that each program has come to: the first stage and the last meet in
    /// them, all of their programs where ranks of one stage run different ones.
    std::map<const TimedProgram*, std::size_t> embedding_sums;
    bool empty() const { return channels.empty() && embedding_sums.size() < 2; }
};
/// Those of the programs, with nothing sent and nobody there.
Meetings meetings_of(const std::vector<TimedProgram>& programs);

/// One program in the order of time: the lanes run side by side, each a node after the other, and work goes
/// on more slowly while collectives run.
class ProgramRun {
public:
    static constexpr double never = std::numeric_limits<double>::infinity();

    ProgramRun(const TimedProgram& program, double communication_scale);

    /// Starts what waits for nothing.
    void start(Meetings& meetings) { go_on(0, meetings); }
    /// To the end, or until something has to be received.
    void alone();
    bool done() const { return ended_ == times_.size(); }
    /// When the next of the nodes that run ends.
    double next_end_s() const { return next_end_s_; }
    /// Ends it and starts what waited for it. Returns whether others may go on now.
    bool finish_next(Meetings& meetings);
    /// Goes on with what others have done `now`. Returns the same.
    bool look_up(double now, Meetings& meetings);
    NodeTimes take() { return std::move(times_); }

private:
    static constexpr std::uint32_t no_run = 0xffffffffU;

    /// Where a section's runs are, and its nodes by lane.
    struct SectionRuns {
        std::uint32_t first = 0;             ///< run
        std::uint32_t host_before = no_run;  ///< the host's last one before the section
        std::array<std::vector<std::uint32_t>, lane_count> nodes;
    };
    enum class LaneState : std::uint8_t { waits, receives, meets, runs, done };
    struct Lane {
        LaneState state = LaneState::waits;
        std::uint32_t section = 0, position = 0;  ///< of its next node, or the one that runs
        std::uint64_t iteration = 0;
        const TimedNode* node = nullptr;
        std::uint32_t run = no_run, waits_for = no_run;
        double since_s = 0, left_s = 0;  ///< left_s: if nothing slowed it down
        double slow_down = 1, end_s = never;
    };

    void enter_section(Lane& lane, std::size_t number);
    void to_next_node(Lane& lane, std::size_t number);
    std::uint32_t run_of(const Lane& lane, std::uint32_t node) const;
    bool has_ended(std::uint32_t run) const { return run == no_run || times_[run].end_s >= 0; }
    /// The first run that the lane's node waits for and that has not ended.
    std::uint32_t awaited(const Lane& lane) const;
    bool is_sent(const TimedNode& receive, const Meetings& meetings) const;
    bool all_are_there(Lane& lane, Meetings& meetings);

    /// Starts whatever can, and ends what takes no time.
    void go_on(double now, Meetings& meetings);
    bool can_start(Lane& lane, Meetings& meetings);
    void begin(Lane& lane, double now);
    void end(Lane& lane, std::size_t number, double now, Meetings& meetings);

    static bool is_work(const Lane& lane, std::size_t number) {
        return lane.node->collective == no_collective && is_device_lane(number);
    }
    GpuShares taken() const;
    /// Of work beside the collectives that run now. Finds what ends next.
    void set_speeds(double now);
    static void set_speed(Lane& lane, double slow_down, double now);

    const TimedProgram& program_;
    double communication_scale_;
    std::vector<SectionRuns> sections_;
    std::vector<GpuShares> shares_;  ///< of the GPU, by collective
    std::array<Lane, lane_count> lanes_;
    std::map<std::uint32_t, std::size_t> received_;  ///< messages, by channel
    NodeTimes times_;                                ///< end_s < 0: not yet
    std::size_t ended_ = 0;
    double next_end_s_ = never;
    std::size_t next_lane_ = 0;
    bool others_may_go_on_ = false;
};

}  // namespace zeroplan
