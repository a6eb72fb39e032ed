#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "zeroplan/critical_path.hpp"
#include "zeroplan/step_collectives.hpp"
#include "zeroplan/trace.hpp"

namespace zeroplan {
namespace {

constexpr double microseconds = 1e6;

std::string quoted(const std::string& text) {
    return nlohmann::json(text).dump();
}

/// Writes the events of a trace one a line; a trace of a large model has a hundred thousand of them.
class TraceWriter {
public:
    explicit TraceWriter(const Plan& plan) : plan_(plan) {}

    std::string write(const std::vector<StepTimeline>& timelines) {
        out_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
        for (std::uint32_t g = 0; g < timelines.size(); ++g) add_names(g, timelines[g]);
        for (std::uint32_t g = 0; g < timelines.size(); ++g) {
            add_operations(g, timelines[g]);
            add_memory(g, timelines[g]);
            add_link_load(g, timelines[g]);
        }
        out_ += "\n]}\n";
        return std::move(out_);
    }

private:
    /// `rest`: the members that only this kind of event has, `args` among them.
    void event(char kind, const std::string& name, std::uint32_t group, std::size_t thread, double time_s,
               const std::string& rest) {
        if (!first_) out_ += ",\n";
        first_ = false;
        fmt::format_to(std::back_inserter(out_),
                       "{{\"ph\":\"{}\",\"name\":{},\"pid\":{},\"tid\":{},\"ts\":{:.4f},{}}}", kind,
                       quoted(name), group + 1, thread, time_s * microseconds, rest);
    }

    static std::string named(const std::string& name) {
        return fmt::format("\"args\":{{\"name\":{}}}", quoted(name));
    }
    static std::size_t thread_of(Stream stream) { return static_cast<std::size_t>(stream) + 1; }

    static bool uses(const StepTimeline& timeline, Stream stream) {
        return std::any_of(timeline.operations.begin(), timeline.operations.end(),
                           [stream](const TimedOperation& o) { return o.stream == stream; });
    }

    void add_names(std::uint32_t group, const StepTimeline& timeline) {
        event('M', "process_name", group, 0, 0, named("ranks " + to_string(plan_.rank_groups[group].ranks)));
        for (const Stream stream : all_streams) {
            if (stream >= Stream::exchange && !uses(timeline, stream)) continue;
            event('M', "thread_name", group, thread_of(stream), 0,
                  named(fmt::format("{} stream", to_string(stream))));
        }
    }

    void add_operations(std::uint32_t group, const StepTimeline& timeline) {
        const StepProgram& program = plan_.programs[plan_.rank_groups[group].program];
        const std::uint32_t number = plan_.rank_groups[group].program;
        const std::vector<bool> critical = is_critical(program, timeline);
        std::vector<const TimedOperation*> by_start;
        for (const TimedOperation& timed : timeline.operations) by_start.push_back(&timed);
        std::stable_sort(by_start.begin(), by_start.end(),
                         [](const auto* a, const auto* b) { return a->start_s < b->start_s; });
        for (const TimedOperation* timed : by_start) {
            const Section& section = program.step[timed->section];
            const Operation& operation = section.operations[timed->operation];
            const double duration = timed->end_s - timed->start_s;
            const bool on_path = critical[static_cast<std::size_t>(timed - timeline.operations.data())];
            event('X', describe(operation, program, model_of(plan_, number), layout_of(plan_, number)), group,
                  thread_of(timed->stream), timed->start_s,
                  fmt::format("\"cat\":\"{}\",\"dur\":{:.4f},\"args\":{{\"section\":{},\"iteration\":{},"
                              "\"critical_path\":{}}}",
                              to_string(timed->stream), duration * microseconds, quoted(section.name),
                              timed->iteration, on_path));
        }
    }

    void add_memory(std::uint32_t group, const StepTimeline& timeline) {
        const std::vector<MemoryPoint> points = memory_over_time(plan_, group, timeline);
        for (std::size_t i = 0; i < points.size(); ++i) {
            // Of several points at one moment the last one counts.
            if (i + 1 < points.size() && points[i + 1].time_s == points[i].time_s) continue;
            event('C', "memory (bytes)", group, 0, points[i].time_s, categories(points[i].live));
        }
    }

    void add_link_load(std::uint32_t group, const StepTimeline& timeline) {
        const bool network = plan_.scenario.cluster.inter_node.bytes_per_s_per_gpu > 0;
        const bool pairs = plan_.scenario.cluster.intra_node == IntraNode::nvlink_pairs;
        const std::string intra = quoted(intra_node_link_name(plan_.scenario.cluster));
        for (const LinkLoadPoint& point : link_load_over_time(plan_, group, timeline))
            event(
                'C', "link load of a GPU (bytes/s)", group, 0, point.time_s,
                fmt::format("\"args\":{{{}:{:.6g}{}{}}}", intra, point.intra_node_bytes_per_s,
                            network ? fmt::format(",\"nic\":{:.6g}", point.nic_bytes_per_s) : "",
                            pairs ? fmt::format(",\"nvlink bridge\":{:.6g}", point.bridge_bytes_per_s) : ""));
    }

    static std::string categories(const CategoryBytes& live) {
        std::string text;
        for (const Category category : all_categories)
            fmt::format_to(std::back_inserter(text), "{}\"{}\":{}", text.empty() ? "" : ",",
                           to_string(category), live[category].count());
        return "\"args\":{" + text + "}";
    }

    const Plan& plan_;
    std::string out_;
    bool first_ = true;
};

}  // namespace

std::string trace_json(const Plan& plan, const std::vector<StepTimeline>& timelines) {
    return TraceWriter(plan).write(timelines);
}

}  // namespace zeroplan
