#include "zeroplan/runner/tcp_store.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "store_protocol.hpp"
#include "store_socket.hpp"
#include "zeroplan/error.hpp"

namespace zeroplan::runner {
namespace {

using Clock = std::chrono::steady_clock;
/// The server answers a get at its deadline; this much later we take it for dead.
constexpr std::chrono::milliseconds grace{5000};

}  // namespace

class TcpStore::Connection {
public:
    Connection(StoreAddress address, Clock::time_point deadline)
        : address_(std::move(address)), socket_(connect_to(address_, deadline)) {
        send_all(std::string(store_greeting), deadline);
        for (std::size_t seen = 0; seen < store_greeting.size();
             seen = std::min(in_.size(), store_greeting.size())) {
            if (in_.compare(0, seen, store_greeting, 0, seen) != 0) throw no_store();
            receive(deadline);
        }
        if (in_.compare(0, store_greeting.size(), store_greeting) != 0) throw no_store();
        in_.erase(0, store_greeting.size());
    }

    StoreAnswer ask(const StoreRequest& request) {
        const auto deadline = Clock::now() + std::chrono::milliseconds(request.timeout_ms) + grace;
        send_all(encode(request), deadline);
        for (;;) {
            if (auto answer = take_answer(in_)) return *answer;
            receive(deadline);
        }
    }

private:
    Error no_store() const {
        return {ErrorCode::run_failed,
                fmt::format("what answers at {} is not a zeroplan run", to_string(address_)),
                "another program uses this port: set MASTER_PORT to a free one"};
    }
    Error gone(const char* how) const {
        return {ErrorCode::run_failed, fmt::format("the store at {} {}", to_string(address_), how),
                "rank 0, or the launcher that keeps the store, has ended: its own message says why"};
    }

    void wait_for(short what, Clock::time_point deadline) {
        pollfd waiting{socket_.get(), what, 0};
        int ready = 0;
        do {
            ready = poll(&waiting, 1, milliseconds_until(deadline));
        } while (ready < 0 && errno == EINTR);
        if (ready <= 0) throw gone("doesn't answer");
    }

    void send_all(const std::string& out, Clock::time_point deadline) {
        for (std::size_t sent = 0; sent < out.size();) {
            wait_for(POLLOUT, deadline);
            const ssize_t n = send(socket_.get(), out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
            if (n < 0 && errno != EAGAIN && errno != EINTR) throw gone("has closed the connection");
            if (n > 0) sent += static_cast<std::size_t>(n);
        }
    }

    void receive(Clock::time_point deadline) {
        wait_for(POLLIN, deadline);
        char bytes[4096];
        const ssize_t n = recv(socket_.get(), bytes, sizeof(bytes), 0);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) throw gone("has closed the connection");
        if (n > 0) in_.append(bytes, static_cast<std::size_t>(n));
    }

    StoreAddress address_;
    FileDescriptor socket_;
    std::string in_;
};

TcpStore::TcpStore(const StoreAddress& address, Milliseconds timeout)
    : address_(address), connection_(std::make_unique<Connection>(address, Clock::now() + timeout)) {}
TcpStore::~TcpStore() = default;

void TcpStore::set(std::string_view key, std::string_view value) {
    const std::lock_guard lock(mutex_);
    connection_->ask({StoreVerb::set, 0, std::string(key), std::string(value)});
}

bool TcpStore::try_get(std::string_view key, std::string& value, Milliseconds timeout) {
    const std::lock_guard lock(mutex_);
    const auto wait = static_cast<std::uint32_t>(std::max<std::int64_t>(timeout.count(), 0));
    StoreAnswer answer = connection_->ask({StoreVerb::get, wait, std::string(key), {}});
    if (answer.found) value = std::move(answer.value);
    return answer.found;
}

std::string TcpStore::get(std::string_view key, Milliseconds timeout) {
    std::string value;
    if (try_get(key, value, timeout)) return value;
    throw Error(ErrorCode::run_failed,
                fmt::format("nobody has set '{}' in the store at {} within {} s", key, to_string(address_),
                            static_cast<double>(timeout.count()) / 1000),
                "a rank is missing or hasn't come this far");
}

void TcpStore::wait(const std::vector<std::string>& keys, Milliseconds timeout) {
    const auto deadline = Clock::now() + timeout;
    std::vector<std::string> missing;
    std::string ignored;
    for (const std::string& key : keys)
        if (!try_get(key, ignored, Milliseconds(milliseconds_until(deadline)))) missing.push_back(key);
    if (missing.empty()) return;
    throw Error(ErrorCode::run_failed,
                fmt::format("nobody has set {} in the store at {} within {} s", fmt::join(missing, ", "),
                            to_string(address_), static_cast<double>(timeout.count()) / 1000),
                "a rank is missing or hasn't come this far");
}

}  // namespace zeroplan::runner
