#include "zeroplan/memory_timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace zeroplan {
namespace {

/// Live buffers in order of allocation, with their sum by category.
class LiveBuffers {
public:
    LiveBuffers(const StepProgram& program, std::span<const BufferId> resident)
        : program_(program), sizes_(program.buffers.size()), live_(program.buffers.size(), false) {
        for (std::size_t i = 0; i < sizes_.size(); ++i) sizes_[i] = allocated_bytes(program.buffers[i]);
        for (const BufferId id : resident) allocate(id);
    }

    void allocate(BufferId id) {
        if (live_.at(id)) refuse(id, "allocated twice");
        live_[id] = true;
        order_.push_back(id);
        bytes_[category(id)] += sizes_[id];
        total_ += sizes_[id];
    }

    void release(BufferId id) {
        if (!live_.at(id)) refuse(id, "freed while not live");
        live_[id] = false;
        // Most buffers are freed soon after they were allocated: search from the back.
        order_.erase(std::next(std::find(order_.rbegin(), order_.rend(), id)).base());
        bytes_[category(id)] -= sizes_[id];
        total_ -= sizes_[id];
    }

    Bytes total() const { return total_; }
    const CategoryBytes& bytes() const { return bytes_; }
    const std::vector<BufferId>& order() const { return order_; }

private:
    Category category(BufferId id) const { return program_.buffers[id].category; }
    [[noreturn]] static void refuse(BufferId id, const char* what) {
        throw Error(ErrorCode::invalid_input, fmt::format("step program: buffer {} is {}", id, what));
    }

    const StepProgram& program_;
    std::vector<Bytes> sizes_;
    std::vector<bool> live_;
    std::vector<BufferId> order_;
    CategoryBytes bytes_;
    Bytes total_;
};

/// Calls `after(section, operation)` after every allocation and release. One pass serves a repeated section,
/// since it frees what it allocates.
void walk(LiveBuffers& live, std::span<const Section> sections,
          const std::function<void(std::uint32_t, OperationId)>& after) {
    for (std::uint32_t s = 0; s < sections.size(); ++s) {
        const auto& operations = sections[s].operations;
        for (OperationId o = 0; o < operations.size(); ++o) {
            if (const auto* allocation = std::get_if<Allocate>(&operations[o].body)) {
                live.allocate(allocation->buffer);
            } else if (const auto* release = std::get_if<Free>(&operations[o].body)) {
                live.release(release->buffer);
            } else {
                continue;
            }
            after(s, o);
        }
    }
}

}  // namespace

MemoryPeak memory_peak(const StepProgram& program, std::span<const Section> sections,
                       std::span<const BufferId> resident) {
    LiveBuffers live(program, resident);
    const Bytes at_start = live.total();
    MemoryPeak peak{.allocated = at_start, .at_peak = live.bytes(), .live = live.order()};
    walk(live, sections, [&](std::uint32_t section, OperationId operation) {
        if (live.total() > peak.allocated) {
            peak.allocated = live.total();
            peak.section = section;
            peak.operation = operation;
        }
    });
    // A second pass up to the peak keeps the walk free of copies of the live list.
    if (peak.allocated > at_start) {
        LiveBuffers again(program, resident);
        bool found = false;
        walk(again, sections, [&](std::uint32_t section, OperationId operation) {
            if (found || section != peak.section || operation != peak.operation) return;
            found = true;
            peak.at_peak = again.bytes();
            peak.live = again.order();
        });
    }
    return peak;
}

std::vector<MemorySample> memory_timeline(const StepProgram& program, std::span<const Section> sections,
                                          std::span<const BufferId> resident) {
    LiveBuffers live(program, resident);
    std::vector<MemorySample> samples;
    walk(live, sections, [&](std::uint32_t section, OperationId operation) {
        samples.push_back({section, operation, live.bytes()});
    });
    return samples;
}

std::vector<BufferId> live_after(std::span<const Section> sections, std::span<const BufferId> before) {
    std::vector<BufferId> live(before.begin(), before.end());
    for (const Section& section : sections) {
        for (const Operation& operation : section.operations) {
            if (const auto* allocation = std::get_if<Allocate>(&operation.body)) {
                live.push_back(allocation->buffer);
            } else if (const auto* release = std::get_if<Free>(&operation.body)) {
                live.erase(std::next(std::find(live.rbegin(), live.rend(), release->buffer)).base());
            }
        }
    }
    return live;
}

std::vector<BufferId> resident_buffers(const StepProgram& program) {
    const auto loaded = live_after({&program.load, 1}, {});
    const auto ready = live_after({&program.init, 1}, loaded);
    return live_after(program.first_step, ready);
}

}  // namespace zeroplan
