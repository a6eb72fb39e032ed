#include "zeroplan/gui/stream_lanes.hpp"

#include <algorithm>

namespace zeroplan::gui {

namespace {

bool same_block(const Operation& a, const Operation& b) {
    const auto* first = std::get_if<Compute>(&a.body);
    const auto* second = std::get_if<Compute>(&b.body);
    return first != nullptr && second != nullptr && first->block == second->block &&
           first->phase == second->phase;
}

QString after_last_dot(const QString& name) {
    return name.mid(name.lastIndexOf('.') + 1);
}

}  // namespace

StreamLanes::StreamLanes(std::shared_ptr<const Plan> plan, std::uint32_t rank_group,
                         const StepTimeline& timeline)
    : plan_(std::move(plan)),
      rank_group_(rank_group),
      omitted_(omitted_iterations(timeline)),
      end_s_(timeline.step_time_s) {
    for (const TimedOperation& timed : timeline.operations) {
        Lane& lane = lanes_[static_cast<std::size_t>(timed.stream)];
        const bool joins = !lane.operations.empty() && lane.operations.back().section == timed.section &&
                           lane.operations.back().iteration == timed.iteration &&
                           same_block(operation(lane.operations.back()), operation(timed));
        if (!joins)
            lane.groups.push_back(
                {lane.operations.size(), lane.operations.size(), timed.start_s, timed.end_s, 0});
        LaneGroup& group = lane.groups.back();
        group.last = lane.operations.size();
        group.end_s = timed.end_s;
        group.busy_s += timed.end_s - timed.start_s;
        lane.operations.push_back(timed);
        end_s_ = std::max(end_s_, timed.end_s);
    }
}

const StepProgram& StreamLanes::program() const {
    return plan_->programs.at(plan_->rank_groups.at(rank_group_).program);
}

const ModelSpec& StreamLanes::model() const {
    return model_of(*plan_, plan_->rank_groups.at(rank_group_).program);
}

const ShardLayout& StreamLanes::layout() const {
    return layout_of(*plan_, plan_->rank_groups.at(rank_group_).program);
}

std::size_t StreamLanes::operation_count() const {
    std::size_t count = 0;
    for (const Lane& lane : lanes_) count += lane.operations.size();
    return count;
}

QString StreamLanes::omitted_label(const Omitted& omitted) const {
    return QObject::tr("%1 more × %2")
        .arg(omitted.iterations)
        .arg(spoken(program().step.at(omitted.section).name));
}

const Operation& StreamLanes::operation(const TimedOperation& timed) const {
    return program().step.at(timed.section).operations.at(timed.operation);
}

const TimedOperation* StreamLanes::longest_within(Stream stream, double begin, double end) const {
    const auto& operations = lane(stream).operations;
    const auto ends_before = [](const TimedOperation& o, double t) { return o.end_s < t; };
    const TimedOperation* longest = nullptr;
    for (auto o = std::lower_bound(operations.begin(), operations.end(), begin, ends_before);
         o != operations.end() && o->start_s <= end; ++o)
        if (longest == nullptr || o->end_s - o->start_s > longest->end_s - longest->start_s) longest = &*o;
    return longest;
}

std::vector<QString> StreamLanes::group_labels(Stream stream, const LaneGroup& group) const {
    const Operation& first = operation(lane(stream).operations[group.first]);
    if (const auto* compute = std::get_if<Compute>(&first.body)) {
        const QString block = text(model().blocks.at(compute->block).name);
        return {text(to_string(compute->phase)) + ' ' + block, block, after_last_dot(block)};
    }
    const QString whole = text(describe(first, program(), model(), layout()));
    return {whole, whole.section(' ', -1), after_last_dot(whole)};
}

QString StreamLanes::operation_label(const TimedOperation& timed) const {
    const Operation& op = operation(timed);
    if (const auto* compute = std::get_if<Compute>(&op.body)) {
        const BlockKind& kind = model().block_kinds.at(model().blocks.at(compute->block).kind);
        return text(kind.operators.at(compute->op).name);
    }
    return text(describe(op, program(), model(), layout()));
}

Description StreamLanes::describe_operation(const TimedOperation& timed) const {
    const Operation& op = operation(timed);
    const Section& section = program().step.at(timed.section);
    Description said{text(describe(op, program(), model(), layout())), {}, {}};
    said.rows.push_back({QObject::tr("stream"), text(to_string(timed.stream)), {}});
    said.rows.push_back({QObject::tr("starts"), text(format_seconds(timed.start_s)), {}});
    said.rows.push_back({QObject::tr("ends"), text(format_seconds(timed.end_s)), {}});
    said.rows.push_back({QObject::tr("takes"), text(format_seconds(timed.end_s - timed.start_s)), {}});
    if (const auto* collective = std::get_if<Collective>(&op.body)) {
        const Bytes size = collective->elements * Bytes{bytes_per_element(collective->dtype)};
        said.rows.push_back({QObject::tr("buffer"), exact(size), {}});
        said.rows.push_back({QObject::tr("dtype"), text(to_string(collective->dtype)), {}});
    }
    if (section.repeat > 1)
        said.rows.push_back(
            {spoken(section.name), QObject::tr("%1 of %2").arg(timed.iteration + 1).arg(section.repeat), {}});
    return said;
}

}  // namespace zeroplan::gui
