#include "zeroplan/runner/tcp_store.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "errors.hpp"
#include "ranks.hpp"
#include "store_socket.hpp"

namespace zeroplan::runner {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

StoreAddress free_port(const std::string& host = "127.0.0.1") {
    return {.host = host, .port = 0, .local_name = {}};
}

void expect_mentions(const Error& error, const std::string& text) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
}

void expect_round_trip(const TcpStoreServer& server) {
    TcpStore a(server.address(), seconds(10)), b(server.address(), seconds(10));
    a.set("key", std::string("binary \0 value", 14));
    EXPECT_EQ(b.get("key", seconds(10)), std::string("binary \0 value", 14));
    b.set("key", "replaced");
    EXPECT_EQ(a.get("key", seconds(10)), "replaced");
    a.set("empty", "");
    EXPECT_EQ(b.get("empty", seconds(10)), "");
    const std::string large(1 << 20, 'x');
    a.set("large", large);
    EXPECT_EQ(b.get("large", seconds(10)), large);
}

TEST(TcpStore, KeepsValuesOverIpv4) {
    expect_round_trip(TcpStoreServer(free_port()));
}

TEST(TcpStore, KeepsValuesOverIpv6) {
    std::optional<TcpStoreServer> server;
    try {
        server.emplace(free_port("::1"));
    } catch (const Error& error) {
        GTEST_SKIP() << error.what();
    }
    EXPECT_EQ(to_string(server->address()), "[::1]:" + std::to_string(server->address().port));
    expect_round_trip(*server);
}

TEST(TcpStore, KeepsValuesByLocalName) {
    expect_round_trip(TcpStoreServer(unused_address()));
}

TEST(TcpStore, ResolvesNames) {
    expect_round_trip(TcpStoreServer(free_port("localhost")));
}

TEST(TcpStore, WaitsForAValueThatComesLater) {
    const TcpStoreServer server(free_port());
    TcpStore waiting(server.address(), seconds(10)), setting(server.address(), seconds(10));
    std::thread later([&] {
        std::this_thread::sleep_for(milliseconds(50));
        setting.set("a", "1");
        setting.set("b", "2");
    });
    waiting.wait({"b", "a"}, seconds(10));
    EXPECT_EQ(waiting.get("b", seconds(10)), "2");
    later.join();
}

TEST(TcpStore, GivesUpAfterTheTimeout) {
    const TcpStoreServer server(free_port());
    TcpStore store(server.address(), seconds(10));
    std::string value = "untouched";
    EXPECT_FALSE(store.try_get("missing", value, milliseconds(30)));
    EXPECT_EQ(value, "untouched");
    expect_mentions(error_of([&] { store.get("missing", milliseconds(30)); }), "nobody has set 'missing'");
    store.set("here", "");
    expect_mentions(error_of([&] {
                        store.wait({"here", "rank/1", "rank/2"}, milliseconds(30));
                    }),
                    "rank/1, rank/2");
    store.set("missing", "now");  // the connection is still good
    EXPECT_EQ(store.get("missing", seconds(10)), "now");
}

TEST(TcpStore, NamesAPortInUse) {
    const TcpStoreServer first(free_port());
    const Error error = error_of([&] { const TcpStoreServer second(first.address()); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_input);
    expect_mentions(error, to_string(first.address()) + " is already in use");
    expect_mentions(error, "MASTER_PORT");
}

TEST(TcpStore, NamesAHostThatIsElsewhereOrNowhere) {
    expect_mentions(error_of([] { const TcpStoreServer server(free_port("192.0.2.1")); }),
                    "not an address of this machine");
    expect_mentions(error_of([] { const TcpStoreServer server(free_port("no-such-host.invalid")); }),
                    "no-such-host.invalid");
}

TEST(TcpStore, SaysWhenNobodyListens) {
    std::uint16_t port = 0;
    {
        const TcpStoreServer server(free_port());
        port = server.address().port;
    }
    const Error error = error_of([&] {
        const TcpStore store({.host = "127.0.0.1", .port = port, .local_name = {}}, milliseconds(60));
    });
    expect_mentions(error, "nobody listens at 127.0.0.1:" + std::to_string(port));
}

TEST(TcpStore, RecognisesAnotherProgram) {
    const FileDescriptor listening = listen_on(free_port());
    const StoreAddress address{.host = "127.0.0.1", .port = port_of(listening), .local_name = {}};
    std::thread other([&] {
        int client = -1;
        while ((client = accept4(listening.get(), nullptr, nullptr, 0)) < 0) std::this_thread::yield();
        const FileDescriptor socket(client);
        send(socket.get(), "SSH-2.0-other\r\n", 15, MSG_NOSIGNAL);
        std::this_thread::sleep_for(milliseconds(50));
    });
    expect_mentions(error_of([&] { const TcpStore store(address, seconds(10)); }), "is not a zeroplan run");
    other.join();
}

TEST(TcpStore, SaysWhenTheServerHasGone) {
    std::optional<TcpStoreServer> server(std::in_place, free_port());
    TcpStore store(server->address(), seconds(10));
    std::thread ending([&] {
        std::this_thread::sleep_for(milliseconds(50));
        server.reset();
    });
    expect_mentions(error_of([&] { store.get("never", seconds(30)); }), "has closed the connection");
    ending.join();
    EXPECT_THROW(store.set("key", "value"), Error);
}

TEST(TcpStoreServer, DropsClientsThatEndOrSpeakNonsense) {
    const TcpStoreServer server(free_port());
    const auto deadline = std::chrono::steady_clock::now() + seconds(10);
    { const FileDescriptor silent = connect_to(server.address(), deadline); }
    const FileDescriptor nonsense = connect_to(server.address(), deadline);
    send(nonsense.get(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
    std::optional<TcpStore> dead(std::in_place, server.address(), seconds(10));
    std::string value;
    EXPECT_FALSE(dead->try_get("key", value, milliseconds(1)));
    dead.reset();
    expect_round_trip(server);
}

}  // namespace
}  // namespace zeroplan::runner
