#include "zeroplan/runner/host_world.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "errors.hpp"
#include "ranks.hpp"
#include "zeroplan/runner/host_communicator.hpp"

namespace zeroplan::runner {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

void expect_mentions(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

/// Another process as rank `rank` of `size`, which takes part in barriers until something stops it.
pid_t start_process(const StoreAddress& address, int rank, int size) {
    const pid_t child = fork();
    if (child != 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
        TcpStore store(address, seconds(20));
        HostWorld world(store, rank, size, {.heartbeat = milliseconds(500)});
        std::vector<int> members;
        for (int member = 0; member < size; ++member) members.push_back(member);
        HostCommunicator communicator(world, members, "test");
        for (;;) communicator.barrier();
    } catch (const PeerFailure&) {
        _exit(7);
    } catch (...) {
        _exit(1);
    }
}

/// Takes part in barriers as the last rank; returns what ended them.
std::string what_ends_barriers(const StoreAddress& address, int size,
                               const std::function<void()>& meanwhile) {
    TcpStore store(address, seconds(20));
    const HostWorld world(store, size - 1, size, {.heartbeat = milliseconds(500)});
    std::vector<int> members;
    for (int member = 0; member < size; ++member) members.push_back(member);
    HostCommunicator communicator(world, members, "test");
    for (int i = 0; i < 10; ++i) communicator.barrier();
    meanwhile();
    return error_of([&] {
               for (;;) communicator.barrier();
           })
        .message();
}

int exit_status(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Children are forked before this process has threads; the store's server is one of them.
struct ServerProcess {
    StoreAddress address = unused_address();
    pid_t pid = fork();
    ServerProcess() {
        if (pid != 0) return;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        const TcpStoreServer server(address);
        for (;;) pause();
    }
    ~ServerProcess() {
        kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
    }
};

TEST(HostWorld, EndsTheOthersWhenARankIsKilled) {
    const ServerProcess server;
    const pid_t victim = start_process(server.address, 0, 3), other = start_process(server.address, 1, 3);
    const std::string message = what_ends_barriers(server.address, 3, [&] { kill(victim, SIGKILL); });
    // The victim hasn't been collected yet: a zombie counts as dead.
    EXPECT_EQ(message, "rank 0 (process " + std::to_string(victim) + ") has died");
    EXPECT_EQ(exit_status(victim), -SIGKILL);
    EXPECT_EQ(exit_status(other), 7);
}

TEST(HostWorld, EndsTheOthersWhenARankHangs) {
    const ServerProcess server;
    const pid_t victim = start_process(server.address, 0, 3), other = start_process(server.address, 1, 3);
    const std::string message = what_ends_barriers(server.address, 3, [&] { kill(victim, SIGSTOP); });
    expect_mentions(message, "rank 0 (process " + std::to_string(victim) + ") has given no sign of life");
    kill(victim, SIGKILL);
    EXPECT_EQ(exit_status(victim), -SIGKILL);
    EXPECT_EQ(exit_status(other), 7);
}

TEST(HostWorld, TellsTheOthersWhyARankFails) {
    std::string messages[2];
    run_ranks(3, [&](HostWorld& world) {
        HostCommunicator communicator(world, {0, 1, 2}, "test");
        communicator.barrier();
        if (world.rank() == 1) return world.report_failure("has run out of data");
        try {
            communicator.barrier();
        } catch (const PeerFailure& failure) {
            messages[world.rank() / 2] = failure.message();
        }
    });
    for (const std::string& message : messages) {
        expect_mentions(message, "rank 1 (process ");
        expect_mentions(message, "has run out of data");
    }
}

TEST(HostWorld, NamesTheRanksThatDoNotCome) {
    const TcpStoreServer server(unused_address());
    TcpStore store(server.address(), seconds(10));
    const Error error =
        error_of([&] { const HostWorld world(store, 1, 4, {.rendezvous = milliseconds(40)}); });
    expect_mentions(error.what(), "3 of 4 ranks have not come");
    expect_mentions(error.what(), "rank 0, 2, 3");
}

TEST(HostWorld, RefusesASecondProcessOfTheSameRank) {
    const TcpStoreServer server(unused_address());
    TcpStore first(server.address(), seconds(10)), second(server.address(), seconds(10));
    const HostWorld world(first, 0, 1);
    expect_mentions(error_of([&] { const HostWorld again(second, 0, 1); }).what(), "RANK=0");
}

TEST(HostWorld, RefusesDifferentWorldSizes) {
    const TcpStoreServer server(unused_address());
    TcpStore a(server.address(), seconds(10)), b(server.address(), seconds(10));
    std::thread other([&] { EXPECT_THROW(HostWorld(b, 1, 3, {.rendezvous = milliseconds(300)}), Error); });
    const Error error = error_of([&] { const HostWorld world(a, 0, 2); });
    other.join();
    expect_mentions(error.what(), "WORLD_SIZE=3");
}

TEST(HostWorld, RefusesRanksOnAnotherMachine) {
    const TcpStoreServer server(unused_address());
    TcpStore store(server.address(), seconds(10));
    store.set("rank/1", "1 1\n2\nanother machine\nnode-b");
    const Error error = error_of([&] { const HostWorld world(store, 0, 2); });
    EXPECT_EQ(error.code(), ErrorCode::not_supported);
    expect_mentions(error.what(), "rank 1 runs on node-b");
}

}  // namespace
}  // namespace zeroplan::runner
