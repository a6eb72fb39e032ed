#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace zeroplan::runner {

/// A thread that counts up a few times a second as long as this process runs at all.
class Heartbeat {
public:
    static constexpr std::chrono::milliseconds period{200};

    explicit Heartbeat(std::atomic<std::uint32_t>& beats) : thread_([this, &beats] { run(beats); }) {}
    Heartbeat(const Heartbeat&) = delete;
    Heartbeat& operator=(const Heartbeat&) = delete;
    ~Heartbeat() {
        {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
        }
        stop_.notify_all();
        thread_.join();
    }

private:
    void run(std::atomic<std::uint32_t>& beats) {
        std::unique_lock lock(mutex_);
        while (!stop_.wait_for(lock, period, [this] { return stopping_; })) beats.fetch_add(1);
    }

    std::mutex mutex_;
    std::condition_variable stop_;
    bool stopping_ = false;
    std::thread thread_;  // last: runs as soon as it is made
};

}  // namespace zeroplan::runner
