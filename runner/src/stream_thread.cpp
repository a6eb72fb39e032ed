#include "zeroplan/runner/stream_thread.hpp"

#include <utility>

namespace zeroplan::runner {

StreamThread::StreamThread() : thread_([this] { run(); }) {}

StreamThread::~StreamThread() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    submitted_.notify_all();
    thread_.join();
}

StreamThread::Ticket StreamThread::submit(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
    submitted_.notify_one();
    return ++issued_;
}

void StreamThread::wait(Ticket ticket) {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return failure_ != nullptr || done_ >= ticket; });
    if (done_ < ticket) std::rethrow_exception(failure_);
}

void StreamThread::drain() {
    std::unique_lock lock(mutex_);
    const Ticket last = issued_;
    lock.unlock();
    wait(last);
}

void StreamThread::run() {
    std::unique_lock lock(mutex_);
    for (;;) {
        submitted_.wait(lock, [this] { return stopping_ || (!queue_.empty() && failure_ == nullptr); });
        if (stopping_) return;
        const std::function<void()> work = std::move(queue_.front());
        queue_.pop_front();
        lock.unlock();
        std::exception_ptr failure;
        try {
            work();
        } catch (...) {
            failure = std::current_exception();
        }
        lock.lock();
        failure_ = failure;
        if (failure == nullptr) ++done_;
        ended_.notify_all();
    }
}

}  // namespace zeroplan::runner
