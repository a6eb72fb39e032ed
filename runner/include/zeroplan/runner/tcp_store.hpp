#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace zeroplan::runner {

/// Where the ranks of a run meet: MASTER_ADDR:MASTER_PORT, or, where a launcher gives none, a name that
/// processes of this machine can find each other by (an abstract Unix socket: nothing to clean up).
struct StoreAddress {
    std::string host = "127.0.0.1";  ///< a name or an IPv4 or IPv6 address
    std::uint16_t port = 0;
    std::string local_name;  ///< not empty: use this instead of host and port
    friend bool operator==(const StoreAddress&, const StoreAddress&) = default;
};
/// "127.0.0.1:29500", "[::1]:29500", "local name"
std::string to_string(const StoreAddress& address);

/// The store's server: a thread that keeps values by key for the ranks of one run. A client that disappears,
/// or that speaks another protocol, is dropped and disturbs nobody.
class TcpStoreServer {
public:
    /// Port 0 takes a free one. Throws Error{invalid_input} if the port is in use or the host is not this
    /// machine.
    explicit TcpStoreServer(const StoreAddress& address);
    TcpStoreServer(const TcpStoreServer&) = delete;
    TcpStoreServer& operator=(const TcpStoreServer&) = delete;
    ~TcpStoreServer();
    /// As given, the port filled in.
    const StoreAddress& address() const;

private:
    class Loop;
    std::unique_ptr<Loop> loop_;
};

/// A connection to the store, usable by several threads in turn.
class TcpStore {
public:
    using Milliseconds = std::chrono::milliseconds;

    /// Tries until somebody answers. Throws Error{run_failed} after `timeout`, or if what answers is no store
    /// of ours.
    TcpStore(const StoreAddress& address, Milliseconds timeout);
    TcpStore(const TcpStore&) = delete;
    TcpStore& operator=(const TcpStore&) = delete;
    ~TcpStore();

    /// Sets or replaces. Throws Error{run_failed} if the server has gone.
    void set(std::string_view key, std::string_view value);
    /// Waits until somebody has set `key`; false after `timeout`. Throws Error{run_failed} if the server has
    /// gone.
    bool try_get(std::string_view key, std::string& value, Milliseconds timeout);
    /// Likewise, but throws Error{run_failed} naming the key and the time waited.
    std::string get(std::string_view key, Milliseconds timeout);
    /// Waits for all of them, `timeout` in all; throws Error{run_failed} naming those that are missing.
    void wait(const std::vector<std::string>& keys, Milliseconds timeout);

private:
    class Connection;
    StoreAddress address_;
    std::mutex mutex_;
    std::unique_ptr<Connection> connection_;
};

}  // namespace zeroplan::runner
