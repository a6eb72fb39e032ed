#include "zeroplan/runner/stream_thread.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

namespace zeroplan::runner {
namespace {

TEST(StreamThread, RunsWorkInOrder) {
    StreamThread stream;
    std::vector<int> done;
    StreamThread::Ticket last = 0;
    for (int i = 0; i < 100; ++i) last = stream.submit([&done, i] { done.push_back(i); });
    stream.wait(last);
    ASSERT_EQ(done.size(), 100U);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(done[static_cast<std::size_t>(i)], i);
    stream.drain();  // nothing left: returns at once
}

TEST(StreamThread, LetsTwoStreamsWaitForEachOther) {
    StreamThread a, b;
    std::atomic<int> value{0};
    const auto first = a.submit([&] { value = 1; });
    const auto second = b.submit([&] {
        a.wait(first);
        value = value * 10 + 2;
    });
    const auto third = a.submit([&] {
        b.wait(second);
        value = value * 10 + 3;
    });
    a.wait(third);
    EXPECT_EQ(value, 123);
}

TEST(StreamThread, WakesWhoWaitsForWorkThatIsDropped) {
    std::atomic<bool> go{false}, woken{false};
    StreamThread a, b;
    a.submit([&] {
        while (!go) std::this_thread::yield();
    });
    const auto dropped = a.submit([] {});
    b.submit([&] {
        try {
            a.wait(dropped);
        } catch (const std::runtime_error&) {
            woken = true;
        }
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // so that b has begun
    a.abandon();
    b.abandon();
    go = true;
    a.join();
    b.join();
    EXPECT_TRUE(woken);
    EXPECT_THROW(a.wait(dropped), std::runtime_error);
}

TEST(StreamThread, HandsItsFailureToWhoeverWaits) {
    StreamThread stream;
    bool ran_after = false;
    const auto good = stream.submit([] {});
    const auto bad = stream.submit([] { throw std::runtime_error("broken"); });
    const auto after = stream.submit([&] { ran_after = true; });
    EXPECT_NO_THROW(stream.wait(good));
    EXPECT_THROW(stream.wait(bad), std::runtime_error);
    EXPECT_THROW(stream.wait(after), std::runtime_error);
    EXPECT_THROW(stream.drain(), std::runtime_error);
    EXPECT_FALSE(ran_after);
}

}  // namespace
}  // namespace zeroplan::runner
