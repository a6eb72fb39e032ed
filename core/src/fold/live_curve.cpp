#include "fold/live_curve.hpp"

#include <algorithm>

namespace zeroplan {
namespace {

/// Calls `visit(phase, allocation, buffer, live)` after every allocation and release from load to a steady
/// step. One pass serves a repeated section, since it frees what it allocates.
template <class Visit>
void walk(const StepProgram& program, const Visit& visit) {
    Bytes live;
    const auto pass = [&](Phase phase, const Section& section) {
        for (const Operation& operation : section.operations) {
            if (const auto* allocation = std::get_if<Allocate>(&operation.body)) {
                const Buffer& buffer = program.buffers[allocation->buffer];
                live += allocated_bytes(buffer);
                visit(phase, true, buffer, live);
            } else if (const auto* release = std::get_if<Free>(&operation.body)) {
                const Buffer& buffer = program.buffers[release->buffer];
                live -= allocated_bytes(buffer);
                visit(phase, false, buffer, live);
            }
        }
    };
    pass(Phase::load, program.load);
    pass(Phase::init, program.init);
    for (const Section& section : program.first_step) pass(Phase::first_step, section);
    const Phase step = program.first_step.empty() ? Phase::first_step : Phase::steady_step;
    for (const Section& section : program.step) pass(step, section);
}

bool is_owned_by_block(BufferRole role) {
    switch (role) {
        case BufferRole::batch:
        case BufferRole::labels:
        case BufferRole::activation:
        case BufferRole::activation_gradient:
        case BufferRole::workspace:
            return true;
        default:
            return false;
    }
}

/// Where a buffer belongs, numbered alike in runs of different lengths.
class Places {
public:
    static constexpr std::uint32_t between = 0xffffffffU, unknown = 0xfffffffeU;

    Places(const ModelSpec& model, const ShardLayout& layout, LayerRun run, std::uint32_t ends) {
        for (std::uint32_t block = 0; block < model.blocks.size(); ++block)
            of_blocks_.push_back(numbered(block, run, ends));
        std::vector<std::uint32_t> of_parameters(model.parameters.size(), unknown);
        for (std::uint32_t block = 0; block < model.blocks.size(); ++block)
            for (const std::uint32_t parameter : model.blocks[block].parameters)
                if (!model.parameters[parameter].shared_with) of_parameters[parameter] = block;
        for (const UnitLayout& unit : layout.units) of_units_.push_back(place_of(unit, of_parameters, run));
    }

    std::uint32_t of(const Buffer& buffer) const {
        const std::vector<std::uint32_t>& places = is_owned_by_block(buffer.role) ? of_blocks_ : of_units_;
        return buffer.owner < places.size() ? places[buffer.owner] : unknown;
    }

private:
    static std::uint32_t numbered(std::uint32_t block, LayerRun run, std::uint32_t ends) {
        if (block < run.first + ends) return block;
        return block < run.first + run.count - ends ? between : block - (run.count - 2 * ends);
    }

    /// A unit belongs to its first parameter's block. One that joins layers belongs to none.
    std::uint32_t place_of(const UnitLayout& unit, const std::vector<std::uint32_t>& of_parameters,
                           LayerRun run) const {
        if (unit.parameters.empty()) return of_blocks_[unit.block];
        const auto block_of = [&](const PlacedParameter& p) { return of_parameters[p.parameter]; };
        const auto in_run = [&](std::uint32_t block) {
            return block - run.first < run.count;  // below run.first it wraps around
        };
        const std::uint32_t first = block_of(unit.parameters.front());
        for (const PlacedParameter& parameter : unit.parameters)
            if (const std::uint32_t block = block_of(parameter);
                block != first && (in_run(block) || in_run(first)))
                return unknown;
        return first < of_blocks_.size() ? of_blocks_[first] : unknown;
    }

    std::vector<std::uint32_t> of_blocks_, of_units_;
};

/// Phase, place, tensor, role and whether it is allocated, the first of them highest.
std::uint64_t key_of(Phase phase, std::uint32_t place, const Buffer& buffer, bool allocation) {
    return std::uint64_t{static_cast<std::uint8_t>(phase)} << 58 | std::uint64_t{place} << 32 |
           std::uint64_t{buffer.tensor} << 6 | std::uint64_t{static_cast<std::uint8_t>(buffer.role)} << 1 |
           static_cast<std::uint64_t>(allocation);
}

}  // namespace

std::optional<std::vector<LiveMoment>> live_curve(const StepProgram& program, const ModelSpec& model,
                                                  const ShardLayout& layout, LayerRun run,
                                                  std::uint32_t ends) {
    const Places places(model, layout, run, ends);
    std::vector<LiveMoment> moments;
    bool known = true;
    walk(program, [&](Phase phase, bool allocation, const Buffer& buffer, Bytes live) {
        const std::uint32_t place = places.of(buffer);
        known = known && place != Places::unknown;
        if (place < Places::unknown)
            moments.push_back({key_of(phase, place, buffer, allocation), phase, live});
    });
    if (!known) return std::nullopt;
    std::stable_sort(moments.begin(), moments.end(),
                     [](const LiveMoment& a, const LiveMoment& b) { return a.key < b.key; });
    return moments;
}

std::optional<LivePeak> carried_on(const std::vector<LiveMoment>& shorter,
                                   const std::vector<LiveMoment>& longer, std::uint64_t more) {
    if (shorter.size() != longer.size()) return std::nullopt;
    LivePeak peak;
    for (std::size_t i = 0; i < shorter.size(); ++i) {
        if (shorter[i].key != longer[i].key || longer[i].live < shorter[i].live) return std::nullopt;
        const Bytes live = shorter[i].live + more * (longer[i].live - shorter[i].live);
        if (live > peak.live) peak = {live, shorter[i].phase};
    }
    return peak;
}

LivePeak highest_live(const StepProgram& program) {
    LivePeak peak;
    walk(program, [&](Phase phase, bool, const Buffer&, Bytes live) {
        if (live > peak.live) peak = {live, phase};
    });
    return peak;
}

}  // namespace zeroplan
