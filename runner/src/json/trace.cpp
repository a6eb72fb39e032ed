#include "trace.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <nlohmann/json.hpp>

namespace zeroplan::runner {
namespace {

using Json = nlohmann::ordered_json;

double microseconds(TimePoint time, TimePoint origin) {
    return std::chrono::duration<double, std::micro>(time - origin).count();
}

Json name_of(const char* what, int rank, std::size_t thread, const std::string& name) {
    return {{"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", thread}, {"args", {{"name", name}}}};
}

}  // namespace

std::string trace_events_json(const Trace& trace, int rank, TimePoint origin) {
    std::vector<std::string> events;
    const auto add = [&events](const Json& event) { events.push_back(event.dump()); };
    add(name_of("process_name", rank, 0, fmt::format("rank {}", rank)));
    for (const Stream stream : {Stream::compute, Stream::gather, Stream::reduce})
        add(name_of("thread_name", rank, static_cast<std::size_t>(stream), std::string(to_string(stream))));
    for (const TraceSpan& span : trace.spans())
        add({{"ph", "X"},
             {"name", span.name},
             {"pid", rank},
             {"tid", static_cast<std::size_t>(span.stream)},
             {"ts", microseconds(span.begin, origin)},
             {"dur", microseconds(span.end, span.begin)}});
    for (const TraceMemory& sample : trace.memory()) {
        Json bytes = Json::object();
        for (const Category category : all_categories)
            bytes[std::string(to_string(category))] = sample.live[category].count();
        add({{"ph", "C"},
             {"name", "memory"},
             {"pid", rank},
             {"ts", microseconds(sample.time, origin)},
             {"args", bytes}});
    }
    return fmt::format("{}", fmt::join(events, ",\n"));
}

std::string trace_file_json(const std::vector<std::string>& events_of_ranks) {
    return fmt::format("{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{}\n]}}\n",
                       fmt::join(events_of_ranks, ",\n"));
}

}  // namespace zeroplan::runner
