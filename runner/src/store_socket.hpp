#pragma once
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "file_descriptor.hpp"
#include "zeroplan/runner/tcp_store.hpp"

namespace zeroplan::runner {

/// One address that a StoreAddress stands for.
struct SocketAddress {
    sockaddr_storage storage{};
    socklen_t length = 0;
    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

/// IPv4 and IPv6 addresses in the resolver's order. Throws Error{invalid_input} if the host has none.
std::vector<SocketAddress> resolve(const StoreAddress& address);

/// Listens on the first of the addresses that this machine has. Throws Error{invalid_input} saying what is
/// wrong.
FileDescriptor listen_on(const StoreAddress& address);
/// The port a listening socket got; 0 for a local name.
std::uint16_t port_of(const FileDescriptor& socket);

/// Connects to the first address that answers, trying again until `deadline`. Throws Error{run_failed}.
FileDescriptor connect_to(const StoreAddress& address, std::chrono::steady_clock::time_point deadline);

/// Milliseconds from now to `deadline` for poll(): at least 0, rounded up.
int milliseconds_until(std::chrono::steady_clock::time_point deadline);

}  // namespace zeroplan::runner
