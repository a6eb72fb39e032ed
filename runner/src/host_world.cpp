#include "zeroplan/runner/host_world.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "heartbeat.hpp"
#include "process_identity.hpp"
#include "shared_counter.hpp"
#include "shared_memory.hpp"

namespace zeroplan::runner {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// A rank that waits looks after the one it waits for this often.
constexpr milliseconds look_interval{100};
constexpr int spins = 300;

/// In shared memory, zero at first: who failed first, and why; then one count of heartbeats a rank.
struct FailureNotice {
    enum : std::uint32_t { none = 0, being_written = 1, written = 2 };
    std::atomic<std::uint32_t> state;
    int culprit;
    char text[1016];
};
struct alignas(64) Beats {
    std::atomic<std::uint32_t> count;
};

/// What a rank says of itself when it joins.
struct Member {
    ProcessIdentity process;
    int world_size = 0;
    HostIdentity host;
};

std::string encode(const Member& member) {
    return fmt::format("{}\n{}\n{}\n{}", to_text(member.process), member.world_size, member.host.id,
                       member.host.name);
}

Member decode(const std::string& text) {
    std::vector<std::string> lines{""};
    for (const char c : text) {
        if (c == '\n') {
            lines.emplace_back();
        } else {
            lines.back() += c;
        }
    }
    lines.resize(4);
    const auto process = process_identity_from_text(lines[0]);
    return {process.value_or(ProcessIdentity{}), std::atoi(lines[1].c_str()), {lines[2], lines[3]}};
}

std::string member_key(int rank) {
    return fmt::format("rank/{}", rank);
}

/// Joins as `rank` and waits for the others.
std::vector<Member> meet(TcpStore& store, int rank, int size, milliseconds timeout) {
    std::string taken;
    if (store.try_get(member_key(rank), taken, milliseconds(0)))
        throw Error(ErrorCode::invalid_input,
                    fmt::format("rank {} is there already: process {} and process {} both have RANK={}", rank,
                                decode(taken).process.pid, this_process().pid, rank),
                    "give every process its own RANK, and every run its own MASTER_PORT");
    store.set(member_key(rank), encode({this_process(), size, this_host()}));

    const auto deadline = Clock::now() + timeout;
    std::vector<Member> members;
    std::vector<int> missing;
    for (int r = 0; r < size; ++r) {
        std::string text;
        const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
        if (!store.try_get(member_key(r), text, std::max(left, milliseconds(0)))) missing.push_back(r);
        members.push_back(decode(text));
    }
    if (!missing.empty())
        throw Error(ErrorCode::run_failed,
                    fmt::format("{} of {} ranks have not come within {} s: rank {}", missing.size(), size,
                                timeout.count() / 1000, fmt::join(missing, ", ")),
                    "start every rank with the same WORLD_SIZE, MASTER_ADDR and MASTER_PORT");
    return members;
}

void check_members(const std::vector<Member>& members) {
    const int size = static_cast<int>(members.size());
    for (int r = 0; r < size; ++r) {
        const Member& member = members[static_cast<std::size_t>(r)];
        if (member.world_size != size)
            throw Error(
                ErrorCode::invalid_input,
                fmt::format("rank {} has WORLD_SIZE={}, another rank has {}", r, member.world_size, size),
                "all ranks of a run need the same WORLD_SIZE");
        if (member.host.id != members[0].host.id)
            throw Error(ErrorCode::not_supported,
                        fmt::format("rank {} runs on {}, rank 0 on {}, or in another container", r,
                                    member.host.name, members[0].host.name),
                        "the host back end shares memory: start all ranks on one machine");
    }
}

}  // namespace

class HostWorld::Impl {
public:
    Impl(TcpStore& store, int rank, int size, const WorldTimeouts& timeouts)
        : store_(store),
          rank_(rank),
          timeouts_(timeouts),
          members_(meet(store, rank, size, timeouts.rendezvous)),
          shared_(share()),
          heartbeat_(beats(rank)) {}

    int rank() const { return rank_; }
    int size() const { return static_cast<int>(members_.size()); }
    TcpStore& store() const { return store_; }

    void report_failure(int culprit, const std::string& message) const {
        FailureNotice& note = notice();
        std::uint32_t expected = FailureNotice::none;
        if (!note.state.compare_exchange_strong(expected, FailureNotice::being_written)) return;
        note.culprit = culprit;
        const std::size_t length = std::min(message.size(), sizeof(note.text) - 1);
        std::memcpy(note.text, message.data(), length);
        note.state.store(FailureNotice::written);
    }

    void check() const {
        const FailureNotice& note = notice();
        if (note.state.load() != FailureNotice::written) return;
        throw failure_of(note.culprit, note.text);
    }

    /// How long the peer that is waited for has given no sign of life, counted in looks and not by the clock:
    /// a whole run that was suspended and goes on has missed no look.
    struct Watch {
        std::uint32_t beats = 0;
        milliseconds silent{0}, waited{0};
    };

    void look_after(int peer, Watch& watch) const {
        check();
        const std::uint32_t beats_now = beats(peer).load();
        watch.silent = beats_now == watch.beats ? watch.silent + look_interval : milliseconds(0);
        watch.beats = beats_now;
        watch.waited += look_interval;
        std::string what;
        if (!is_running(members_[static_cast<std::size_t>(peer)].process)) {
            what = "has died";
        } else if (watch.silent >= timeouts_.heartbeat) {
            what = fmt::format("has given no sign of life for {} s", timeouts_.heartbeat.count() / 1000);
        } else if (watch.waited >= timeouts_.collective) {
            what = fmt::format("has not taken its part in a collective for {} s",
                               timeouts_.collective.count() / 1000);
        } else {
            return;
        }
        report_failure(peer, what);
        check();
        // The notice is still being written, by a rank that may have died over it: nobody waits for that one.
        throw failure_of(peer, what);
    }

    void wait_for(SharedCounter& counter, std::uint32_t target, int peer) const {
        for (int i = 0; i < spins; ++i) {
            if (counter.has_reached(target)) return;
            pause_briefly();
        }
        Watch watch{beats(peer).load()};
        while (!counter.has_reached(target)) {
            if (counter.sleep(target, look_interval)) continue;
            try {
                look_after(peer, watch);
            } catch (const PeerFailure&) {
                // It may have taken its part and ended between our two looks.
                if (!counter.has_reached(target)) throw;
            }
        }
    }

    std::string get(const std::string& key, int peer) const {
        Watch watch{beats(peer).load()};
        for (std::string value;;) {
            if (store_.try_get(key, value, look_interval)) return value;
            look_after(peer, watch);
        }
    }

private:
    SharedMemory share() const {
        check_members(members_);
        if (rank_ != 0) {
            SharedMemory memory = SharedMemory::open(store_.get("world", timeouts_.rendezvous));
            store_.set(fmt::format("world/{}", rank_), "open");
            return memory;
        }
        SharedMemory memory = SharedMemory::create(sizeof(FailureNotice) + sizeof(Beats) * members_.size());
        store_.set("world", memory.handle());
        std::vector<std::string> opened;  // until then this rank, which made it, must live
        for (int r = 1; r < size(); ++r) opened.push_back(fmt::format("world/{}", r));
        store_.wait(opened, timeouts_.rendezvous);
        return memory;
    }

    FailureNotice& notice() const { return *reinterpret_cast<FailureNotice*>(shared_.data()); }
    std::atomic<std::uint32_t>& beats(int rank) const {
        auto* all = reinterpret_cast<Beats*>(shared_.data() + sizeof(FailureNotice));
        return all[rank].count;
    }
    PeerFailure failure_of(int culprit, const std::string& what) const {
        return {ErrorCode::run_failed, fmt::format("{} {}", name(culprit), what),
                "the run can't go on without it"};
    }
    std::string name(int rank) const {
        return fmt::format("rank {} (process {})", rank,
                           members_[static_cast<std::size_t>(rank)].process.pid);
    }

    TcpStore& store_;
    int rank_;
    WorldTimeouts timeouts_;
    std::vector<Member> members_;
    SharedMemory shared_;
    Heartbeat heartbeat_;
};

HostWorld::HostWorld(TcpStore& store, int rank, int size, const WorldTimeouts& timeouts)
    : impl_(std::make_unique<Impl>(store, rank, size, timeouts)) {}
HostWorld::~HostWorld() = default;
int HostWorld::rank() const {
    return impl_->rank();
}
int HostWorld::size() const {
    return impl_->size();
}
TcpStore& HostWorld::store() const {
    return impl_->store();
}
void HostWorld::report_failure(const std::string& message) const {
    impl_->report_failure(impl_->rank(), message);
}
void HostWorld::check() const {
    impl_->check();
}
void HostWorld::wait_for(SharedCounter& counter, std::uint32_t target, int peer) const {
    impl_->wait_for(counter, target, peer);
}
std::string HostWorld::get(const std::string& key, int peer) const {
    return impl_->get(key, peer);
}

}  // namespace zeroplan::runner
