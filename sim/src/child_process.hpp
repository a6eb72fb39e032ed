#pragma once
#include <cstddef>
#include <functional>

namespace zeroplan::sim {

/// Memory that a child process writes and its parent reads; zero at first.
class SharedMemory {
public:
    /// Throws Error{run_failed} if the system has no more.
    explicit SharedMemory(std::size_t bytes);
    ~SharedMemory();
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;

    void* data() const { return data_; }

private:
    std::size_t bytes_;
    void* data_;
};

/// Runs `body` in a forked child and waits for it, calling `meanwhile` about ten times a second. Throws
/// Error{run_failed} with how the child ended and the last lines it wrote to standard error unless it
/// returned. The child ends with its parent.
void run_in_child(const std::function<void()>& body, const std::function<void()>& meanwhile);

}  // namespace zeroplan::sim
