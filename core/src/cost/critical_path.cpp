#include "zeroplan/critical_path.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace zeroplan {
namespace {

/// Ends and starts that are the same moment differ by rounding alone.
constexpr double same_moment = 1e-9;

class BackwardWalk {
public:
    BackwardWalk(const StepProgram& program, const StepTimeline& timeline)
        : program_(program), operations_(timeline.operations), slack_(same_moment * timeline.step_time_s) {
        const std::size_t count = operations_.size();
        before_on_stream_.resize(count, none);
        first_of_iteration_.resize(count, 0);
        std::array<std::size_t, stream_count> last{};
        last.fill(none);
        for (std::size_t i = 0; i < count; ++i) {
            std::size_t& on_stream = last[static_cast<std::size_t>(operations_[i].stream)];
            before_on_stream_[i] = on_stream;
            on_stream = i;
            const bool begins = i == 0 || !same_iteration(i - 1, i);
            first_of_iteration_[i] = begins ? i : first_of_iteration_[i - 1];
            by_end_.push_back(i);
        }
        std::stable_sort(by_end_.begin(), by_end_.end(), [this](std::size_t a, std::size_t b) {
            return operations_[a].end_s < operations_[b].end_s;
        });
    }

    std::vector<PathSpan> walk() {
        std::vector<PathSpan> path;
        if (by_end_.empty()) return path;
        std::size_t current = by_end_.back();
        for (;;) {
            const TimedOperation& timed = operations_[current];
            if (timed.end_s > timed.start_s) path.push_back({timed.start_s, timed.end_s, current, false});
            if (timed.start_s <= slack_) break;
            const std::size_t previous = binding(current);
            const double from = previous == none ? 0 : operations_[previous].end_s;
            if (timed.start_s - from > slack_)
                path.push_back({from, timed.start_s, std::nullopt,
                                previous != none && skips_repetitions(previous, current)});
            if (previous == none) break;
            current = previous;
        }
        std::reverse(path.begin(), path.end());
        return path;
    }

private:
    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    bool same_iteration(std::size_t a, std::size_t b) const {
        return operations_[a].section == operations_[b].section &&
               operations_[a].iteration == operations_[b].iteration;
    }
    bool skips_repetitions(std::size_t before, std::size_t after) const {
        return operations_[before].section == operations_[after].section &&
               operations_[before].iteration + 1 < operations_[after].iteration;
    }
    bool ends_at(std::size_t operation, double moment) const {
        return std::abs(operations_[operation].end_s - moment) <= slack_;
    }

    /// What let the operation start, or what ended last before it.
    std::size_t binding(std::size_t current) const {
        const double start = operations_[current].start_s;
        const std::size_t stream = before_on_stream_[current];
        if (stream != none && ends_at(stream, start)) return stream;
        if (const std::size_t awaited = awaited_until(current, start); awaited != none) return awaited;
        return last_ended(current, start);
    }

    std::size_t awaited_until(std::size_t current, double start) const {
        const TimedOperation& timed = operations_[current];
        const auto& waits = program_.step[timed.section].operations[timed.operation].waits;
        for (std::size_t i = current; i-- > first_of_iteration_[current];)
            if (ends_at(i, start) &&
                std::find(waits.begin(), waits.end(), operations_[i].operation) != waits.end())
                return i;
        return none;
    }

    /// Of those issued before `current`: later ones can't have let it start.
    std::size_t last_ended(std::size_t current, double start) const {
        auto end = std::upper_bound(
            by_end_.begin(), by_end_.end(), start + slack_,
            [this](double moment, std::size_t operation) { return moment < operations_[operation].end_s; });
        while (end != by_end_.begin())
            if (*--end < current) return *end;
        return none;
    }

    const StepProgram& program_;
    const std::vector<TimedOperation>& operations_;
    double slack_;
    std::vector<std::size_t> before_on_stream_, first_of_iteration_, by_end_;
};

/// What an operation is on the path: a phase of its own, or a wait that belongs to the next one or to the one
/// before.
struct Role {
    const char* phase = nullptr;
    std::string cause;
    bool belongs_to_next = true;
};

Role role(const Compute& compute) {
    return {compute.phase == ComputePhase::forward ? "forward" : "backward", {}, true};
}
Role role(const OptimizerStep&) {
    return {"optimizer step", {}, true};
}
Role role(const Accumulate&) {
    return {"backward", {}, true};
}
Role role(const Collective& collective) {
    const bool reduces =
        collective.kind == CollectiveKind::reduce_scatter || collective.kind == CollectiveKind::all_reduce;
    return {nullptr, fmt::format("{} {}", to_string(collective.kind), to_string(collective.group)), !reduces};
}
Role role(const Transfer& transfer) {
    return {nullptr, transfer.send ? "send" : "receive", !transfer.send};
}
Role role(const HostCopy& copy) {
    const bool arrives = copy.path == CopyPath::to_device || copy.path == CopyPath::from_nvme;
    return {nullptr, fmt::format("copy {}", to_string(copy.path)), arrives};
}
Role role(const HostStep&) {
    return {"optimizer step", {}, true};
}
template <typename Other>
Role role(const Other&) {
    return {nullptr, "other", true};
}

Role role_of(const Operation& operation) {
    // Shards that are cast or copied before they are gathered.
    if (operation.stream == Stream::gather && std::holds_alternative<Accumulate>(operation.body))
        return {nullptr, {}, true};
    return std::visit([](const auto& body) { return role(body); }, operation.body);
}

/// Phase of what each timed operation lets start: its own, or that of the first one which waits for it, or of
/// the next one on its stream; nullptr where there is none in the same iteration.
std::vector<const char*> phases_served(const StepProgram& program,
                                       const std::vector<TimedOperation>& operations) {
    constexpr auto none = static_cast<std::size_t>(-1);
    std::vector<const char*> served(operations.size(), nullptr);
    std::map<OperationId, std::size_t> waiting;  // first one that waits for the operation
    std::array<std::size_t, stream_count> next{};
    for (std::size_t i = operations.size(); i-- > 0;) {
        const TimedOperation& timed = operations[i];
        const bool ends_iteration = i + 1 == operations.size() ||
                                    operations[i + 1].section != timed.section ||
                                    operations[i + 1].iteration != timed.iteration;
        if (ends_iteration) {
            waiting.clear();
            next.fill(none);
        }
        const Operation& operation = program.step[timed.section].operations[timed.operation];
        std::size_t& behind = next[static_cast<std::size_t>(timed.stream)];
        served[i] = role_of(operation).phase;
        if (const auto found = waiting.find(timed.operation); served[i] == nullptr && found != waiting.end())
            served[i] = served[found->second];
        if (served[i] == nullptr && behind != none) served[i] = served[behind];
        behind = i;
        for (const OperationId awaited : operation.waits) waiting[awaited] = i;
    }
    return served;
}

/// When work runs, on whichever stream of the device: moments in order, without overlap.
std::vector<std::pair<double, double>> working_times(const StepProgram& program,
                                                     const StepTimeline& timeline) {
    std::vector<std::pair<double, double>> all, merged;
    for (const TimedOperation& timed : timeline.operations) {
        const OperationBody& body = program.step[timed.section].operations[timed.operation].body;
        const bool communicates =
            std::holds_alternative<Collective>(body) || std::holds_alternative<Transfer>(body);
        if (!communicates && !is_offload(timed.stream)) all.emplace_back(timed.start_s, timed.end_s);
    }
    std::sort(all.begin(), all.end());
    for (const auto& [start, end] : all)
        if (merged.empty() || start > merged.back().second)
            merged.emplace_back(start, end);
        else
            merged.back().second = std::max(merged.back().second, end);
    return merged;
}

/// Fills the phase list span by span.
class PhaseList {
public:
    PhaseList(const Plan& plan, std::uint32_t rank_group, const StepTimeline& timeline)
        : plan_(plan),
          number_(plan.rank_groups[rank_group].program),
          program_(plan.programs[number_]),
          timeline_(timeline),
          path_(critical_path(program_, timeline)),
          served_(phases_served(program_, timeline.operations)),
          working_(working_times(program_, timeline)) {}

    std::vector<PathPhase> take() {
        for (const PathSpan& span : path_)
            if (!span.repetitions) add(span);
        flush_pending();
        repeat();
        return std::move(phases_);
    }

private:
    const Operation& operation_of(const PathSpan& span) const {
        const TimedOperation& timed = timeline_.operations[*span.operation];
        return program_.step[timed.section].operations[timed.operation];
    }
    std::uint32_t section_of(const PathSpan& span) const {
        return timeline_.operations[*span.operation].section;
    }

    void add(const PathSpan& span) {
        if (!span.operation) {
            pending_.push_back(&span);
            return;
        }
        const Role what = role_of(operation_of(span));
        if (what.phase == nullptr) {
            const char* serves = served_[*span.operation];
            if (what.belongs_to_next && serves != nullptr)
                add_wait(begin(span, serves), span, what.cause);
            else if (what.belongs_to_next || current_ == nullptr)
                pending_.push_back(&span);
            else
                add_wait(*current_, span, what.cause);
            return;
        }
        PathPhase& of = begin(span, what.phase);
        of.seconds += span.end_s - span.start_s;
        of.compute_s += span.end_s - span.start_s;
    }

    /// The phase that the path is in from `span` on.
    PathPhase& begin(const PathSpan& span, const char* name) {
        current_ = &phase(section_of(span), name);
        flush_pending();
        return *current_;
    }

    /// What came before the current phase and belongs to it.
    void flush_pending() {
        for (const PathSpan* span : pending_) {
            PathPhase& of = current_ != nullptr ? *current_ : phase(0, "wait");
            add_wait(of, *span, span->operation ? role_of(operation_of(*span)).cause : std::string());
        }
        pending_.clear();
    }

    void add_wait(PathPhase& of, const PathSpan& span, const std::string& cause) {
        of.seconds += span.end_s - span.start_s;
        const double hidden = worked_s(span);
        const double seconds = span.end_s - span.start_s - hidden;
        of.compute_s += hidden;
        if (!(seconds > 0)) return;
        if (cause.empty()) {
            of.idle_s += seconds;
            return;
        }
        of.exposed_s[cause] += seconds;
        if (seconds <= of.longest_wait_s) return;
        of.longest_wait_s = seconds;
        of.longest_wait =
            describe(operation_of(span), program_, model_of(plan_, number_), layout_of(plan_, number_));
    }

    /// Of a span that waits, in which work goes on that the path doesn't lead through.
    double worked_s(const PathSpan& span) const {
        auto work = std::partition_point(working_.begin(), working_.end(),
                                         [&](const auto& w) { return w.second <= span.start_s; });
        double sum = 0;
        for (; work != working_.end() && work->first < span.end_s; ++work)
            sum += std::min(work->second, span.end_s) - std::max(work->first, span.start_s);
        return sum;
    }

    PathPhase& phase(std::uint32_t section, const std::string& name) {
        for (std::size_t i = 0; i < phases_.size(); ++i)
            if (sections_[i] == section && phases_[i].phase == name) return phases_[i];
        phases_.reserve(most_phases());  // so that current_ stays where it is
        sections_.push_back(section);
        return phases_.emplace_back(PathPhase{
            .section = program_.step[section].name, .phase = name, .times = program_.step[section].repeat});
    }
    std::size_t most_phases() const { return 4 * program_.step.size(); }

    /// Repetitions that the time line leaves out are like those that it lists.
    void repeat() {
        std::map<std::uint32_t, double> left_out, listed;
        for (std::size_t i = 0; i < phases_.size(); ++i) listed[sections_[i]] += phases_[i].seconds;
        for (std::size_t i = 1; i < path_.size(); ++i)
            if (path_[i - 1].repetitions && path_[i].operation)
                left_out[section_of(path_[i])] += path_[i - 1].end_s - path_[i - 1].start_s;
        for (std::size_t i = 0; i < phases_.size(); ++i) {
            const double sum = listed[sections_[i]];
            if (!(sum > 0)) continue;
            const double factor = (sum + left_out[sections_[i]]) / sum;
            phases_[i].seconds *= factor;
            phases_[i].compute_s *= factor;
            phases_[i].idle_s *= factor;
            for (auto& [cause, seconds] : phases_[i].exposed_s) seconds *= factor;
        }
    }

    const Plan& plan_;
    std::uint32_t number_;
    const StepProgram& program_;
    const StepTimeline& timeline_;
    std::vector<PathSpan> path_;
    std::vector<const char*> served_;  ///< by timed operation
    std::vector<std::pair<double, double>> working_;
    std::vector<PathPhase> phases_;
    std::vector<std::uint32_t> sections_;  ///< by phase
    std::vector<const PathSpan*> pending_;
    PathPhase* current_ = nullptr;
};

}  // namespace

std::vector<PathSpan> critical_path(const StepProgram& program, const StepTimeline& timeline) {
    return BackwardWalk(program, timeline).walk();
}

std::vector<bool> is_critical(const StepProgram& program, const StepTimeline& timeline) {
    std::vector<bool> critical(timeline.operations.size(), false);
    for (const PathSpan& span : critical_path(program, timeline))
        if (span.operation) critical[*span.operation] = true;
    return critical;
}

std::vector<PathPhase> path_phases(const Plan& plan, std::uint32_t rank_group, const StepTimeline& timeline) {
    return PhaseList(plan, rank_group, timeline).take();
}

}  // namespace zeroplan
