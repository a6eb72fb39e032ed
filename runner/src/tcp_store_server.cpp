#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <map>
#include <thread>

#include "store_protocol.hpp"
#include "store_socket.hpp"
#include "zeroplan/runner/tcp_store.hpp"

namespace zeroplan::runner {
namespace {

using Clock = std::chrono::steady_clock;

/// One rank's connection. Sockets don't block: a client that stops reading holds up nobody but itself.
struct Client {
    FileDescriptor socket;
    std::string in, out;
    bool greeted = false, gone = false;
    std::string wanted;  ///< key of the get that is being waited for, "" = none
    Clock::time_point deadline;

    void receive() {
        char bytes[4096];
        for (;;) {
            const ssize_t n = recv(socket.get(), bytes, sizeof(bytes), 0);
            if (n > 0) {
                in.append(bytes, static_cast<std::size_t>(n));
            } else {
                if (n == 0 || (errno != EAGAIN && errno != EINTR)) gone = true;
                return;
            }
        }
    }
    void send_some() {
        const ssize_t n = send(socket.get(), out.data(), out.size(), MSG_NOSIGNAL);
        if (n > 0) out.erase(0, static_cast<std::size_t>(n));
        if (n < 0 && errno != EAGAIN && errno != EINTR) gone = true;
    }
};

}  // namespace

class TcpStoreServer::Loop {
public:
    explicit Loop(StoreAddress address)
        : address_(std::move(address)), listening_(listen_on(address_)), stop_(eventfd(0, EFD_CLOEXEC)) {
        if (address_.local_name.empty()) address_.port = port_of(listening_);
        thread_ = std::thread([this] { run(); });
    }
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;
    ~Loop() {
        eventfd_write(stop_.get(), 1);
        thread_.join();
    }
    const StoreAddress& address() const { return address_; }

private:
    void run() {
        for (;;) {
            std::vector<pollfd> waiting{{stop_.get(), POLLIN, 0}, {listening_.get(), POLLIN, 0}};
            for (const Client& client : clients_)
                waiting.push_back({client.socket.get(),
                                   static_cast<short>(client.out.empty() ? POLLIN : POLLIN | POLLOUT), 0});
            poll(waiting.data(), waiting.size(), next_timeout());
            if (waiting[0].revents != 0) return;
            auto state = waiting.begin() + 2;
            for (Client& client : clients_)
                if ((state++)->revents != 0) client.receive();
            if (waiting[1].revents != 0) accept_clients();
            for (Client& client : clients_) serve(client);
            answer_waiting();
            for (Client& client : clients_)
                if (!client.out.empty()) client.send_some();
            clients_.remove_if([](const Client& client) { return client.gone; });
        }
    }

    int next_timeout() const {
        int timeout = -1;
        for (const Client& client : clients_)
            if (!client.wanted.empty()) {
                const int left = milliseconds_until(client.deadline);
                timeout = timeout < 0 ? left : std::min(timeout, left);
            }
        return timeout;
    }

    void accept_clients() {
        for (;;) {
            FileDescriptor socket(accept4(listening_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
            if (!socket) return;
            clients_.emplace_back();
            clients_.back().socket = std::move(socket);
            clients_.back().out = store_greeting;
        }
    }

    void serve(Client& client) {
        if (!client.greeted) {
            const std::size_t seen = std::min(client.in.size(), store_greeting.size());
            if (client.in.compare(0, seen, store_greeting, 0, seen) != 0) client.gone = true;
            if (client.gone || seen < store_greeting.size()) return;
            client.in.erase(0, seen);
            client.greeted = true;
        }
        // One request at a time: a client waits for its answer before it asks again.
        while (client.wanted.empty() && !client.gone) {
            if (!plausible_request(client.in)) client.gone = true;
            const auto request = client.gone ? std::nullopt : take_request(client.in);
            if (!request) return;
            if (request->verb == StoreVerb::set) {
                values_[request->key] = request->value;
                client.out += encode(StoreAnswer{});
            } else {
                client.wanted = request->key;
                client.deadline = Clock::now() + std::chrono::milliseconds(request->timeout_ms);
            }
            answer(client);
        }
    }

    void answer(Client& client) {
        if (client.wanted.empty()) return;
        const auto found = values_.find(client.wanted);
        if (found == values_.end() && Clock::now() < client.deadline) return;
        client.out +=
            encode(found == values_.end() ? StoreAnswer{false, {}} : StoreAnswer{true, found->second});
        client.wanted.clear();
    }

    void answer_waiting() {
        for (Client& client : clients_) {
            answer(client);
            if (client.greeted) serve(client);
        }
    }

    StoreAddress address_;
    FileDescriptor listening_, stop_;
    std::list<Client> clients_;
    std::map<std::string, std::string> values_;
    std::thread thread_;
};

TcpStoreServer::TcpStoreServer(const StoreAddress& address) : loop_(std::make_unique<Loop>(address)) {}
TcpStoreServer::~TcpStoreServer() = default;
const StoreAddress& TcpStoreServer::address() const {
    return loop_->address();
}

}  // namespace zeroplan::runner
