#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "zeroplan/step_program.hpp"

namespace zeroplan {

/// The native engine's arena: one growing address range, best fit, neighbouring holes merged, grown in slabs.
/// Says how much a program reserves beyond what is live, because holes don't always fit.
class ArenaModel {
public:
    /// Address range grows in multiples of 2 MiB: the granularity of a GPU's virtual memory mapping.
    static constexpr std::uint64_t slab_bytes = 2ULL << 20;

    /// Offset of a new block of `bytes` > 0: the smallest hole it fits into (the lowest of equals), else the
    /// end.
    std::uint64_t allocate(std::uint64_t bytes);
    void free(std::uint64_t offset, std::uint64_t bytes);
    /// Bytes reserved so far: the highest end of a block, rounded up to a slab. Never shrinks.
    Bytes reserved() const { return round_up(Bytes{end_}, Bytes{slab_bytes}); }

private:
    void insert_hole(std::uint64_t offset, std::uint64_t bytes);
    void erase_hole(std::map<std::uint64_t, std::uint64_t>::iterator hole);

    std::map<std::uint64_t, std::uint64_t> holes_;         ///< offset → bytes, no two adjacent
    std::multimap<std::uint64_t, std::uint64_t> by_size_;  ///< bytes → offset
    std::uint64_t end_ = 0;
};

/// Peak of reserved bytes after each of `stages`, run one after another from an empty arena.
std::vector<Bytes> arena_reserved(const StepProgram& program,
                                  std::span<const std::span<const Section>> stages);

}  // namespace zeroplan
