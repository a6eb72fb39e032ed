#include "store_socket.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <thread>

#include "zeroplan/error.hpp"

namespace zeroplan::runner {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int backlog = 128;
constexpr std::chrono::milliseconds retry_pause{20};

SocketAddress local_address(const std::string& name) {
    SocketAddress result;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    // A leading zero byte makes the name abstract: it lives as long as a socket holds it.
    const std::size_t length = std::min(name.size(), sizeof(address.sun_path) - 1);
    std::memcpy(address.sun_path + 1, name.data(), length);
    std::memcpy(&result.storage, &address, sizeof(address));
    result.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
    return result;
}

FileDescriptor open_socket(const SocketAddress& address) {
    return FileDescriptor(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

void send_at_once(const FileDescriptor& socket) {
    const int yes = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

Error cannot_listen(const StoreAddress& address, int reason) {
    const std::string where = to_string(address);
    if (reason == EADDRINUSE)
        return {ErrorCode::invalid_input, fmt::format("{} is already in use", where),
                "another run may use it: set MASTER_PORT to a free port"};
    if (reason == EADDRNOTAVAIL)
        return {ErrorCode::invalid_input, fmt::format("{} is not an address of this machine", where),
                "rank 0 must run on the machine that MASTER_ADDR names"};
    if (reason == EACCES)
        return {ErrorCode::invalid_input, fmt::format("this user may not listen on {}", where),
                "set MASTER_PORT to a port from 1024 to 65535"};
    return {ErrorCode::run_failed, fmt::format("can't listen on {}: {}", where, std::strerror(reason))};
}

/// 0 if connected, else the error.
int try_connect(const FileDescriptor& socket, const SocketAddress& address, Clock::time_point deadline) {
    if (connect(socket.get(), address.get(), address.length) == 0) return 0;
    if (errno != EINPROGRESS) return errno;
    pollfd waiting{socket.get(), POLLOUT, 0};
    if (poll(&waiting, 1, milliseconds_until(deadline)) <= 0) return ETIMEDOUT;
    int error = 0;
    socklen_t length = sizeof(error);
    getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    return error;
}

}  // namespace

std::string to_string(const StoreAddress& address) {
    if (!address.local_name.empty()) return "local name " + address.local_name;
    const bool ipv6 = address.host.find(':') != std::string::npos;
    return fmt::format("{}:{}", ipv6 ? "[" + address.host + "]" : address.host, address.port);
}

std::vector<SocketAddress> resolve(const StoreAddress& address) {
    if (!address.local_name.empty()) return {local_address(address.local_name)};
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    // "localhost" is this machine even where no file says so (RFC 6761, section 6.3), as in a bare container;
    // no host at all is how getaddrinfo is asked for the loopback addresses.
    const char* host = address.host == "localhost" ? nullptr : address.host.c_str();
    addrinfo* found = nullptr;
    const int status = getaddrinfo(host, std::to_string(address.port).c_str(), &hints, &found);
    if (status != 0)
        throw Error(ErrorCode::invalid_input,
                    fmt::format("MASTER_ADDR '{}' has no address: {}", address.host, gai_strerror(status)),
                    "give a host name or an IP address of the machine that rank 0 runs on");
    std::vector<SocketAddress> result;
    for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
        SocketAddress one;
        std::memcpy(&one.storage, entry->ai_addr, entry->ai_addrlen);
        one.length = entry->ai_addrlen;
        result.push_back(one);
    }
    freeaddrinfo(found);
    return result;
}

FileDescriptor listen_on(const StoreAddress& address) {
    int reason = EADDRNOTAVAIL;
    for (const SocketAddress& candidate : resolve(address)) {
        FileDescriptor socket = open_socket(candidate);
        const int yes = 1;
        if (socket) setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
        if (socket && bind(socket.get(), candidate.get(), candidate.length) == 0 &&
            listen(socket.get(), backlog) == 0)
            return socket;
        // A machine without IPv6 isn't worth a word as long as IPv4 works; a port in use is.
        if (reason == EADDRNOTAVAIL || errno == EADDRINUSE) reason = errno;
        if (reason == EADDRINUSE) break;
    }
    throw cannot_listen(address, reason);
}

std::uint16_t port_of(const FileDescriptor& socket) {
    sockaddr_storage storage{};
    socklen_t length = sizeof(storage);
    if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&storage), &length) != 0) return 0;
    if (storage.ss_family == AF_INET) {
        sockaddr_in address{};
        std::memcpy(&address, &storage, sizeof(address));
        return ntohs(address.sin_port);
    }
    if (storage.ss_family == AF_INET6) {
        sockaddr_in6 address{};
        std::memcpy(&address, &storage, sizeof(address));
        return ntohs(address.sin6_port);
    }
    return 0;
}

FileDescriptor connect_to(const StoreAddress& address, Clock::time_point deadline) {
    const std::vector<SocketAddress> candidates = resolve(address);
    for (int reason = ETIMEDOUT;;) {
        for (const SocketAddress& candidate : candidates) {
            FileDescriptor socket = open_socket(candidate);
            reason = socket ? try_connect(socket, candidate, deadline) : errno;
            if (reason != 0) continue;
            if (address.local_name.empty()) send_at_once(socket);
            return socket;
        }
        if (Clock::now() >= deadline)
            throw Error(ErrorCode::run_failed,
                        fmt::format("nobody listens at {}: {}", to_string(address), std::strerror(reason)),
                        "is rank 0 running, and do all ranks have its MASTER_ADDR and MASTER_PORT?");
        std::this_thread::sleep_for(retry_pause);
    }
}

int milliseconds_until(Clock::time_point deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000'000));
}

}  // namespace zeroplan::runner
