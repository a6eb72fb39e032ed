#include "zeroplan/runner/arena.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "zeroplan/error.hpp"
#include "zeroplan/step_program.hpp"

namespace zeroplan::runner {
namespace {

constexpr std::size_t page_size = 4096;
constexpr int poison_byte = 0xff;  // all bits set: NaN as fp32, fp16 and bf16

}  // namespace

Arena::~Arena() {
    for (const auto& [memory, block] : blocks_) munmap(memory, block.mapped);
}

void* Arena::allocate(Bytes size, Category category) {
    const Bytes counted = round_up(size, Bytes{arena_alignment});
    const std::size_t mapped = counted.count() == 0 ? page_size : round_up(counted.count(), page_size);
    // Populated now rather than at first touch: an allocation costs memory from the moment it is counted.
    void* memory =
        mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        throw Error(ErrorCode::run_failed,
                    fmt::format("the system has no {} for {} ({} are live): {}", format_bytes(counted),
                                to_string(category), format_bytes(total_), std::strerror(errno)),
                    "use fewer ranks on this machine, a higher ZeRO stage or a smaller model");
    if (fill_ == Fill::poison) std::memset(memory, poison_byte, mapped);

    blocks_.emplace(memory, Block{counted, mapped, category});
    live_[category] += counted;
    total_ += counted;
    if (total_ > overall_.allocated) overall_ = {total_, live_};
    if (total_ > window_.allocated) window_ = {total_, live_};
    return memory;
}

void Arena::release(void* memory) {
    const auto found = blocks_.find(memory);
    if (found == blocks_.end()) throw std::logic_error("release of memory that the arena doesn't hold");
    const Block block = found->second;
    blocks_.erase(found);
    munmap(memory, block.mapped);
    live_[block.category] -= block.counted;
    total_ -= block.counted;
}

}  // namespace zeroplan::runner
