#pragma once
#include <cstddef>
#include <string>

#include "file_descriptor.hpp"

namespace zeroplan::runner {

/// Memory that processes of one machine share. It has no name: peers open it through /proc while its creator
/// lives, so that whatever ends the processes leaves nothing behind, and the size of /dev/shm doesn't limit
/// it. Its pages are present from the start: a rank's memory doesn't grow when it communicates.
class SharedMemory {
public:
    /// Zeros. Throws Error{run_failed} if the system has no room.
    static SharedMemory create(std::size_t size);
    /// What handle() of the creator says. Throws Error{run_failed} if the creator has gone or may not be
    /// looked into.
    static SharedMemory open(const std::string& handle);

    SharedMemory(SharedMemory&& other) noexcept;
    SharedMemory& operator=(SharedMemory&&) = delete;
    ~SharedMemory();

    /// For open() in a process of the same user; valid as long as this object lives.
    std::string handle() const;
    std::byte* data() const { return data_; }
    std::size_t size() const { return size_; }

private:
    SharedMemory(FileDescriptor file, std::size_t size);

    FileDescriptor file_;
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace zeroplan::runner
