#pragma once
#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "zeroplan/category.hpp"
#include "zeroplan/step_program.hpp"

namespace zeroplan::runner {

using TimePoint = std::chrono::steady_clock::time_point;

/// One executed operation of a rank.
struct TraceSpan {
    std::string name;
    Stream stream = Stream::compute;
    TimePoint begin, end;
};
/// Live bytes after an allocation or a free.
struct TraceMemory {
    TimePoint time;
    CategoryBytes live;
};

/// What a rank did in one step. Streams record at the same time.
class Trace {
public:
    void add(TraceSpan span) {
        const std::lock_guard lock(mutex_);
        spans_.push_back(std::move(span));
    }
    void add(const TraceMemory& memory) {
        const std::lock_guard lock(mutex_);
        memory_.push_back(memory);
    }
    /// Once all streams are empty.
    const std::vector<TraceSpan>& spans() const { return spans_; }
    const std::vector<TraceMemory>& memory() const { return memory_; }

private:
    std::mutex mutex_;
    std::vector<TraceSpan> spans_;
    std::vector<TraceMemory> memory_;
};

/// Chrome trace events of one rank, comma separated: a process a rank, a thread a stream, a counter of memory
/// by category. Times count from `origin`.
std::string trace_events_json(const Trace& trace, int rank, TimePoint origin);
/// The whole file of several ranks' events.
std::string trace_file_json(const std::vector<std::string>& events_of_ranks);

}  // namespace zeroplan::runner
