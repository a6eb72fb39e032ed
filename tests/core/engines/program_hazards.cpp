#include "core/engines/program_hazards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace zeroplan {
namespace {

/// Per stream: the number of its operations known to have ended.
using Clock = std::array<std::size_t, stream_count>;

Clock later(const Clock& a, const Clock& b) {
    Clock c;
    for (std::size_t s = 0; s < stream_count; ++s) c[s] = std::max(a[s], b[s]);
    return c;
}

struct Access {
    BufferId buffer;
    bool writes;
};

struct Event {
    std::size_t stream;
    std::size_t position;  ///< 1-based within its stream
    bool writes;
};

std::vector<Access> accesses(const OperationBody& body) {
    std::vector<Access> list;
    const auto add = [&](BufferId buffer, bool writes) {
        if (buffer != no_buffer) list.push_back({buffer, writes});
    };
    if (const auto* c = std::get_if<Collective>(&body)) {
        add(c->send.buffer, false);
        add(c->receive.buffer, true);
    } else if (const auto* a = std::get_if<Accumulate>(&body)) {
        add(a->from.buffer, false);
        add(a->to.buffer, true);
    } else if (const auto* k = std::get_if<Compute>(&body)) {
        for (const Argument& argument : k->arguments)
            add(argument.buffer,
                argument.role == ArgumentRole::output || argument.role == ArgumentRole::grad_input ||
                    argument.role == ArgumentRole::gradients || argument.role == ArgumentRole::workspace);
    } else if (const auto* o = std::get_if<OptimizerStep>(&body)) {
        for (const Operand& operand : {o->parameters, o->master, o->momentum, o->variance})
            add(operand.buffer, true);
        add(o->gradients.buffer, false);
    } else if (const auto* h = std::get_if<HostCopy>(&body)) {
        add(h->buffer, h->path == CopyPath::to_device);
    }
    return list;
}

class Checker {
public:
    explicit Checker(const StepProgram& program) : program_(program) {}

    std::vector<std::string> check() {
        run(program_.load);
        run(program_.init);
        for (const Section& section : program_.first_step) run(section);
        const std::set<BufferId> resident = live_;
        for (const Section& section : program_.step) {
            const std::set<BufferId> before = live_;
            run(section);
            if (section.repeat > 1 && live_ != before)
                complain(section, 0, "can't repeat: it leaves buffers or frees them");
        }
        if (live_ != resident && !program_.step.empty())
            complain(program_.step.back(), 0, "leaves buffers allocated or frees resident ones");
        run(program_.save);
        if (live_ != resident) complain(program_.save, 0, "leaves buffers allocated");
        return std::move(found_);
    }

private:
    void complain(const Section& section, std::size_t operation, std::string what) {
        found_.push_back(fmt::format("{} operation {}: {}", section.name, operation, what));
    }

    void run(const Section& section) {
        std::vector<Clock> ends(section.operations.size());
        history_.clear();
        host_ = issued_;  // a section starts with empty streams
        for (std::size_t i = 0; i < section.operations.size(); ++i) step(section, i, ends);
        if (host_ != issued_ && !section.operations.empty())
            complain(section, section.operations.size(), "ends with busy streams");
    }

    void step(const Section& section, std::size_t i, std::vector<Clock>& ends) {
        const Operation& operation = section.operations[i];
        Clock waited = host_;
        for (const OperationId w : operation.waits) {
            if (w >= i)
                complain(section, i, "waits for a later operation");
            else
                waited = later(waited, ends[w]);
        }
        if (const auto* a = std::get_if<Allocate>(&operation.body)) {
            if (!live_.insert(a->buffer).second) complain(section, i, "allocates a live buffer");
            pools_[a->buffer] = static_cast<std::size_t>(operation.stream);
        } else if (const auto* f = std::get_if<Free>(&operation.body)) {
            host_ = waited;
            if (live_.erase(f->buffer) == 0) complain(section, i, "frees a dead buffer");
            for (const Event& e : history_[f->buffer])
                if (e.stream != 0 && e.stream != pools_[f->buffer] && host_[e.stream] < e.position)
                    complain(section, i, "frees a buffer in use");
            history_.erase(f->buffer);
        } else if (std::holds_alternative<Wait>(operation.body)) {
            host_ = waited;
        } else if (!std::holds_alternative<LoadBatch>(operation.body)) {
            on_stream(section, i, waited, ends);
        }
        if (std::holds_alternative<Free>(operation.body) || std::holds_alternative<Wait>(operation.body))
            ends[i] = host_;
    }

    void on_stream(const Section& section, std::size_t i, Clock waited, std::vector<Clock>& ends) {
        const Operation& operation = section.operations[i];
        const auto stream = static_cast<std::size_t>(operation.stream);
        Clock& previous = stream_end_[stream];
        const Clock start = later(waited, previous);
        const std::size_t position = ++issued_[stream];
        for (const Access& access : accesses(operation.body)) {
            if (live_.count(access.buffer) == 0)
                complain(section, i, fmt::format("uses dead buffer {}", access.buffer));
            for (const Event& e : history_[access.buffer])
                if ((e.writes || access.writes) && e.stream != stream && start[e.stream] < e.position)
                    complain(section, i, fmt::format("races on buffer {}", access.buffer));
            history_[access.buffer].push_back({stream, position, access.writes});
        }
        previous = start;
        previous[stream] = position;
        ends[i] = previous;
    }

    const StepProgram& program_;
    std::set<BufferId> live_;
    std::map<BufferId, std::size_t> pools_;  ///< the stream that was current at its allocation
    std::map<BufferId, std::vector<Event>> history_;
    Clock host_{}, issued_{};
    std::array<Clock, stream_count> stream_end_{};
    std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> hazards(const StepProgram& program) {
    return Checker(program).check();
}

}  // namespace zeroplan
