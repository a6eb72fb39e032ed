#include "shared_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "zeroplan/error.hpp"
#include "zeroplan/units.hpp"

namespace zeroplan::runner {
namespace {

Error no_room(std::size_t size, int reason) {
    return {ErrorCode::run_failed,
            fmt::format("the system has no {} of shared memory for communication between the ranks: {}",
                        format_bytes(Bytes{size}), std::strerror(reason)),
            "use fewer ranks, or give this machine or container more memory"};
}

}  // namespace

SharedMemory SharedMemory::create(std::size_t size) {
    FileDescriptor file(memfd_create("zeroplan", MFD_CLOEXEC));
    // Reserved now, so that a lack of memory is an error here and not a bus error at some later write.
    if (!file || ftruncate(file.get(), static_cast<off_t>(size)) != 0) throw no_room(size, errno);
    if (const int reason = posix_fallocate(file.get(), 0, static_cast<off_t>(size)); reason != 0)
        throw no_room(size, reason);
    return {std::move(file), size};
}

SharedMemory SharedMemory::open(const std::string& handle) {
    FileDescriptor file(::open(handle.c_str(), O_RDWR | O_CLOEXEC));
    struct stat status {};
    if (!file || fstat(file.get(), &status) != 0)
        throw Error(ErrorCode::run_failed,
                    fmt::format("can't open the memory shared at {}: {}", handle, std::strerror(errno)),
                    "the rank that made it has ended, or runs as another user or in another container");
    return {std::move(file), static_cast<std::size_t>(status.st_size)};
}

SharedMemory::SharedMemory(FileDescriptor file, std::size_t size) : file_(std::move(file)), size_(size) {
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file_.get(), 0);
    if (memory == MAP_FAILED) throw no_room(size, errno);
    data_ = static_cast<std::byte*>(memory);
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : file_(std::move(other.file_)), data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}

SharedMemory::~SharedMemory() {
    if (data_ != nullptr) munmap(data_, size_);
}

std::string SharedMemory::handle() const {
    return fmt::format("/proc/{}/fd/{}", getpid(), file_.get());
}

}  // namespace zeroplan::runner
