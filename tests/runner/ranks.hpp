#pragma once
#include <unistd.h>

#include <atomic>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "zeroplan/runner/host_world.hpp"

namespace zeroplan::runner {

/// A store address that no other test uses.
inline StoreAddress unused_address() {
    static std::atomic<int> count{0};
    StoreAddress address;
    address.local_name = "zeroplan-test-" + std::to_string(getpid()) + "-" + std::to_string(count++);
    return address;
}

/// Runs `body` as every rank of a world of `size` ranks, each a thread of this process. Throws what a rank
/// threw.
inline void run_ranks(int size, const std::function<void(HostWorld&)>& body) {
    const TcpStoreServer server(unused_address());
    std::vector<std::exception_ptr> failures(static_cast<std::size_t>(size));
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < size; ++rank)
        ranks.emplace_back([&, rank] {
            try {
                TcpStore store(server.address(), std::chrono::seconds(20));
                HostWorld world(store, rank, size);
                body(world);
            } catch (...) {
                failures[static_cast<std::size_t>(rank)] = std::current_exception();
            }
        });
    for (std::thread& rank : ranks) rank.join();
    for (const std::exception_ptr& failure : failures)
        if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace zeroplan::runner
