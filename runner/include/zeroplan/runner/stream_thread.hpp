#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace zeroplan::runner {

/// A stream: work runs on a thread of its own, in the order it was submitted, while the submitter goes on.
/// After a piece of work has thrown nothing more runs, and every wait throws the same exception.
class StreamThread {
public:
    /// Counts the work submitted so far; what wait() takes.
    using Ticket = std::uint64_t;

    StreamThread();
    StreamThread(const StreamThread&) = delete;
    StreamThread& operator=(const StreamThread&) = delete;
    /// abandon() and join().
    ~StreamThread();

    Ticket submit(std::function<void()> work);
    /// Until that piece of work and all before it have ended. Any thread may wait.
    void wait(Ticket ticket);
    /// Until the stream is empty.
    void drain();

    /// Drops what hasn't begun; who waits for it gets an exception. Streams whose work waits for one another
    /// are all abandoned, then all joined, before any of them is destroyed.
    void abandon();
    /// Until the work that has begun has ended. Call abandon() first.
    void join();

private:
    void run();

    std::mutex mutex_;
    std::condition_variable submitted_, ended_;
    std::deque<std::function<void()>> queue_;
    Ticket issued_ = 0, done_ = 0;
    bool stopping_ = false;
    std::exception_ptr failure_;
    std::thread thread_;  // last: runs as soon as it is made
};

}  // namespace zeroplan::runner
