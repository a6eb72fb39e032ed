#include "zeroplan/runner/stream_thread.hpp"

#include <stdexcept>
#include <utility>

namespace zeroplan::runner {

StreamThread::StreamThread() : thread_([this] { run(); }) {}

StreamThread::~StreamThread() {
    abandon();
    join();
}

void StreamThread::abandon() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        if (failure_ == nullptr)
            failure_ = std::make_exception_ptr(std::runtime_error("the stream was abandoned"));
    }
    submitted_.notify_all();
    ended_.notify_all();
}

void StreamThread::join() {
    if (thread_.joinable()) thread_.join();
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
        if (failure == nullptr)
            ++done_;
        else if (failure_ == nullptr)
            failure_ = failure;
        ended_.notify_all();
    }
}

}  // namespace zeroplan::runner
