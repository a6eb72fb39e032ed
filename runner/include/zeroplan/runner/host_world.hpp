#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "zeroplan/error.hpp"
#include "zeroplan/runner/tcp_store.hpp"

namespace zeroplan::runner {

struct SharedCounter;

/// This rank ends because of another one; where that one has an error of its own, it is the one to show.
class PeerFailure : public Error {
public:
    using Error::Error;
};

/// How long to be patient. All of them must be shorter than what a user takes for a hang.
struct WorldTimeouts {
    std::chrono::milliseconds rendezvous{60'000};  ///< until all ranks have come
    std::chrono::milliseconds heartbeat{6'000};  ///< without a sign of life from a rank that others wait for
    std::chrono::milliseconds collective{1'800'000};  ///< of a rank that lives but never takes its part
};

/// The ranks of a run on this machine, and how they notice that one of them has died, hangs or has failed.
/// Every rank gives a sign of life a few times a second from a thread of its own. Whoever waits for a rank
/// looks after it; the first to find something wrong tells all others through shared memory, so that every
/// rank names the same culprit.
class HostWorld {
public:
    /// Meets the other ranks. Throws Error{run_failed} naming ranks that don't come, and Error{not_supported}
    /// if they aren't all on one machine.
    HostWorld(TcpStore& store, int rank, int size, const WorldTimeouts& timeouts = {});
    HostWorld(const HostWorld&) = delete;
    HostWorld& operator=(const HostWorld&) = delete;
    ~HostWorld();

    int rank() const;
    int size() const;

    /// Tells the other ranks that this one ends because of `message`; the first rank to fail is the one they
    /// name.
    void report_failure(const std::string& message) const;
    /// Throws PeerFailure if a rank has failed.
    void check() const;

    /// Blocks until the counter, that `peer` advances, has reached `target` (modulo 2^32). Throws PeerFailure
    /// naming rank and process if a rank dies, hangs or fails meanwhile.
    void wait_for(SharedCounter& counter, std::uint32_t target, int peer) const;
    /// A value that `peer` sets in the store; watches the peer while waiting.
    std::string get(const std::string& key, int peer) const;
    TcpStore& store() const;

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace zeroplan::runner
