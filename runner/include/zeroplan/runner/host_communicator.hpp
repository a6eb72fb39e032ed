#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "zeroplan/dtype.hpp"
#include "zeroplan/runner/host_world.hpp"

namespace zeroplan::runner {

/// NCCL-shaped collectives between ranks of one machine, over shared memory. Calls block; every member makes
/// the same calls in the same order. A stream that should progress on its own needs a communicator of its
/// own, used by one thread. Sums are taken in fp32 in the order of the ranks and rounded once, so they don't
/// depend on timing, on how the data is cut into pieces, or on which rank holds the result.
///
/// Every call throws PeerFailure if a member dies, hangs or fails; the communicator is of no use after that.
class HostCommunicator {
public:
    /// `members`: ranks of the world in ascending order, this one among them. `name` is the same on all
    /// members and used once. Throws Error{run_failed} if there is no memory for the staging.
    HostCommunicator(const HostWorld& world, std::vector<int> members, const std::string& name);
    HostCommunicator(HostCommunicator&&) noexcept;
    HostCommunicator& operator=(HostCommunicator&&) noexcept;
    ~HostCommunicator();

    int rank() const;  ///< position among the members
    int size() const;

    /// `elements` from every member; receive holds size() · elements, in rank order. In place if
    /// send == receive + rank · elements. Any dtype.
    void all_gather(const void* send, void* receive, std::uint64_t elements, DType dtype);
    /// Sums send's size() · elements over the members; receive gets part `rank` of the sum. In place if
    /// receive == send + rank · elements. fp32, bf16, fp16.
    void reduce_scatter(const void* send, void* receive, std::uint64_t elements, DType dtype);
    /// Sums `elements` over the members, in place. fp32, bf16, fp16.
    void all_reduce(void* buffer, std::uint64_t elements, DType dtype);
    /// Copies `elements` from member `root` to the others. Any dtype.
    void broadcast(void* buffer, std::uint64_t elements, DType dtype, int root);
    /// Returns when every member has called it.
    void barrier();

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace zeroplan::runner
