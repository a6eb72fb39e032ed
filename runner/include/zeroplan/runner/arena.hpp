#pragma once
#include <cstddef>
#include <unordered_map>

#include "zeroplan/category.hpp"

namespace zeroplan::runner {

/// The highest number of live bytes and who was live at that moment (categories don't peak together).
struct ArenaPeak {
    Bytes allocated;
    CategoryBytes at_peak;  ///< sums to `allocated` exactly
    friend bool operator==(const ArenaPeak&, const ArenaPeak&) = default;
};

/// The memory of one rank: every allocation is tagged with its category and counted in the planner's rounded
/// sizes. Each allocation is its own mapping, present from the start and returned to the system when freed,
/// so that the process's own peak follows the arena's. Used by one thread.
class Arena {
public:
    /// What new memory holds: zeros, or a pattern that is NaN in every float format (finds reads before
    /// writes).
    enum class Fill { zero, poison };

    explicit Arena(Fill fill = Fill::zero) : fill_(fill) {}
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;
    ~Arena();

    /// Memory for `size` bytes, aligned to a page; counts `size` rounded up to 512 B under `category`.
    /// Throws Error{run_failed} naming category and size if the system has none.
    void* allocate(Bytes size, Category category);
    /// Throws std::logic_error if `memory` isn't live.
    void release(void* memory);

    const CategoryBytes& live() const { return live_; }
    /// Of all time.
    const ArenaPeak& overall_peak() const { return overall_; }
    /// Since the last start_window(), or of all time; never below what was live at the start.
    const ArenaPeak& window_peak() const { return window_; }
    void start_window() { window_ = {live_.total(), live_}; }

private:
    struct Block {
        Bytes counted;
        std::size_t mapped = 0;
        Category category = Category::parameters;
    };

    Fill fill_;
    std::unordered_map<void*, Block> blocks_;
    CategoryBytes live_;
    Bytes total_;
    ArenaPeak overall_, window_;
};

}  // namespace zeroplan::runner
