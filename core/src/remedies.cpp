#include "zeroplan/remedies.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <tuple>

#include <fmt/format.h>

#include "printable.hpp"
#include "remedy_ladders.hpp"
#include "zeroplan/step_timeline.hpp"

namespace zeroplan {
namespace {

constexpr std::size_t most_remedies = 3;

/// A change and the ladder that it is a rung of.
struct Rung {
    const Ladder* ladder;
    const Change* change;
};

double slowest_step(const Plan& plan) {
    double slowest = 0;
    if (plan.scenario.training.pipeline_parallel > 1) {
        for (const StepTimeline& step : closed_form_steps(plan))
            slowest = std::max(slowest, step.step_time_s);
    } else {
        for (std::uint32_t g = 0; g < plan.rank_groups.size(); ++g)
            slowest = std::max(slowest, closed_form_step(plan, g).step_time_s);
    }
    return slowest;
}

/// Nothing where the time of such a step is not modelled.
std::optional<double> step_time(const Plan& plan) {
    try {
        return slowest_step(plan);
    } catch (const Error&) {
        return std::nullopt;
    }
}

std::optional<double> ratio(std::optional<double> after, std::optional<double> before) {
    if (!after || !before || *before <= 0) return std::nullopt;
    return *after / *before;
}

std::string time_in_words(std::optional<double> step_time_ratio) {
    if (!step_time_ratio) return "step time n/a";
    const double change = 100 * (*step_time_ratio - 1);
    return std::abs(change) < 0.5 ? std::string("same step time")
                                  : fmt::format("{}{} % step time", change < 0 ? "" : "+", fixed(change, 0));
}

std::string price_in_words(std::span<const Rung> rungs, std::uint64_t gpus, std::uint64_t more,
                           std::optional<double> step_time_ratio) {
    std::string text;
    for (const Rung& rung : rungs) {
        const bool adds_gpus = rung.ladder->needs_hardware && more > gpus;
        if (!text.empty()) text += "; ";
        text += adds_gpus ? fmt::format("{} GPUs, not {}", format_count(more), format_count(gpus))
                          : rung.ladder->price;
    }
    return text + "; " + time_in_words(step_time_ratio);
}

std::string flags_of(std::span<const Rung> rungs) {
    std::string text;
    for (const Rung& rung : rungs) text += (text.empty() ? "" : " ") + rung.change->flags;
    return text;
}

double share(Bytes needed, Bytes there) {
    return there == Bytes{} ? 0.0 : static_cast<double>(needed.count()) / static_cast<double>(there.count());
}

/// What is needed over what there is: of the device, or of a node's host memory while it trains.
double excess(const Plan& plan) {
    Bytes host;
    for (const RankGroup& group : plan.rank_groups)
        for (const PhaseMemory& phase : group.phases)
            if (phase.phase != Phase::load && phase.phase != Phase::save)
                host = std::max(host, phase.host_per_node);
    return std::max(share(plan.memory.high, plan.memory.capacity), share(host, plan.memory.host_capacity));
}

std::uint64_t operations_of(const Plan& plan) {
    std::uint64_t operations = 0;
    for (const StepProgram& program : plan.programs)
        for (const Section& section : program.step) operations += section.operations.size();
    return operations;
}

/// What is kept of a plan with changes.
struct Trial {
    MemorySummary memory;
    double excess = 0;
    std::uint64_t gpus = 0;
    std::optional<double> step_time;  ///< only of one that fits: most trials don't

    explicit Trial(const Plan& plan)
        : memory(plan.memory), excess(zeroplan::excess(plan)), gpus(plan.scenario.world_size()) {
        if (fits()) step_time = zeroplan::step_time(plan);
    }
    bool fits() const { return memory.verdict != Verdict::does_not_fit; }
    /// The share of the device that is certainly needed: above 1 it does not fit.
    double least() const { return share(memory.low, memory.capacity); }
};

class Search {
public:
    Search(const Plan& plan, std::uint64_t most_operations)
        : plan_(plan),
          scenario_(scenario_json(plan.scenario)),
          ladders_(remedy_ladders(plan.scenario)),
          sequences_(shorter_sequences(plan.scenario)),
          operations_left_(most_operations) {}

    std::vector<Remedy> run() {
        for (const Ladder& ladder : ladders_) climb(ladder, std::nullopt, excess(plan_));
        if (found_.empty()) {
            pair_up(false);
            if (found_.empty()) pair_up(true);
        }
        std::stable_sort(found_.begin(), found_.end(), [](const Remedy& a, const Remedy& b) {
            const auto order = [](const Remedy& r) {
                return std::tuple{r.verdict, r.needs_hardware, r.step_time_ratio.value_or(1.0)};
            };
            return order(a) < order(b);
        });
        if (found_.size() > most_remedies) found_.resize(most_remedies);
        // Last, whatever its step's time: such a step trains with other samples.
        if (found_.size() < most_remedies && activations_can_help()) add_shorter_sequences();
        if (found_.empty() && !closest_.empty()) add_closest();
        return std::move(found_);
    }

private:
    /// Behind the other changes that fit as surely, but before new hardware.
    void add_shorter_sequences() {
        if (sequences_.changes.empty()) return;
        // Where the shortest doesn't fit, none does: one plan tells.
        const Rung shortest{&sequences_, &sequences_.changes.back()};
        if (const auto& trial = tried({&shortest, 1}); !trial || !trial->fits()) return;
        const std::size_t before = found_.size();
        climb(sequences_, std::nullopt, excess(plan_));
        if (found_.size() == before) return;
        const auto order = [](const Remedy& r) { return std::pair{r.verdict, r.needs_hardware}; };
        const auto place = std::find_if(found_.begin(), found_.end() - 1, [&](const Remedy& other) {
            return order(found_.back()) < order(other);
        });
        std::rotate(place, found_.end() - 1, found_.end());
    }

    /// What stays between steps leaves room on the device.
    bool activations_can_help() const {
        return std::all_of(plan_.rank_groups.begin(), plan_.rank_groups.end(), [&](const RankGroup& group) {
            return group.resident + group.runtime < plan_.memory.capacity;
        });
    }

    /// The plan with the changes, or nothing where the engine or the cluster can't have them.
    std::optional<Plan> planned_with(std::span<const Rung> rungs) const {
        std::vector<Setting> settings;
        for (const Rung& rung : rungs)
            settings.insert(settings.end(), rung.change->settings.begin(), rung.change->settings.end());
        try {
            return make_plan(resolve_scenario({.text = scenario_, .settings = std::move(settings)}));
        } catch (const Error&) {
            return std::nullopt;
        }
    }

    /// What planned_with() says, planned once however often it is asked; nothing once enough was planned.
    const std::optional<Trial>& tried(std::span<const Rung> rungs) {
        const auto [entry, is_new] = trials_.try_emplace(flags_of(rungs));
        if (!is_new || operations_left_ == 0) return entry->second;
        if (const auto plan = planned_with(rungs)) {
            entry->second.emplace(*plan);
            operations_left_ -= std::min(operations_left_, operations_of(*plan));
        }
        return entry->second;
    }

    /// Up to the first change that fits together with `given`, or to one after which no other can. One that
    /// fits marginally gives way to a later one that fits for certain. `before` is the excess without it.
    const Change* climb(const Ladder& ladder, std::optional<Rung> given, double before) {
        const Change* marginal = nullptr;
        for (const Change& change : ladder.changes) {
            std::vector<Rung> rungs;
            if (given) rungs.push_back(*given);
            rungs.push_back({&ladder, &change});
            const std::optional<Trial>& trial = tried(rungs);
            if (!trial) continue;
            const double gain = before - trial->excess;
            if (gain <= 0 && ladder.gradual) return marginal;
            if (trial->fits() && marginal != nullptr) {
                if (trial->memory.verdict != Verdict::fits) continue;
                found_.pop_back();
            }
            if (keep(rungs, *trial)) {
                if (trial->memory.verdict == Verdict::fits) return &change;
                marginal = &change;
            } else if (ladder.halving && trial->least() - gain > 1) {
                return marginal;
            }
            before = trial->excess;
        }
        return marginal;
    }

    /// The mildest pair of every two ladders; with hardware or without, which is cheaper.
    void pair_up(bool hardware) {
        for (std::size_t i = 0; i < ladders_.size(); ++i)
            for (std::size_t j = i + 1; j < ladders_.size(); ++j)
                if (!ladders_[i].needs_hardware && ladders_[j].needs_hardware == hardware)
                    climb_both(ladders_[i], ladders_[j]);
    }

    /// The mildest second change that helps with the strongest first one, then the mildest first one.
    void climb_both(const Ladder& a, const Ladder& b) {
        for (auto strongest = a.changes.rbegin(); strongest != a.changes.rend(); ++strongest) {
            const Rung first{&a, &*strongest};
            const std::optional<Trial>& trial = tried({&first, 1});
            if (!trial) continue;
            if (const Change* second = climb(b, first, trial->excess)) soften(first, {&b, second});
            return;
        }
    }

    /// Puts the first change that helps beside `second` in place of the strongest one, which was kept.
    void soften(const Rung& strongest, const Rung& second) {
        for (const Change& change : strongest.ladder->changes) {
            if (&change == strongest.change) return;
            const std::array rungs{Rung{strongest.ladder, &change}, second};
            const std::optional<Trial>& trial = tried(rungs);
            if (!trial || trial->memory.verdict > found_.back().verdict) continue;
            found_.pop_back();
            keep(rungs, *trial);
            return;
        }
    }

    /// True if the changes make it fit.
    bool keep(std::span<const Rung> rungs, const Trial& trial) {
        if (trial.fits()) {
            found_.push_back(remedy(rungs, trial, trial.step_time));
        } else if (closest_.empty() || trial.excess < closest_excess_) {
            closest_.assign(rungs.begin(), rungs.end());
            closest_excess_ = trial.excess;
        }
        return trial.fits();
    }

    /// The time of a step that doesn't fit is worth knowing of this one only.
    void add_closest() {
        const std::optional<Plan> plan = planned_with(closest_);
        found_.push_back(remedy(closest_, Trial(*plan), step_time(*plan)));
    }

    Remedy remedy(std::span<const Rung> rungs, const Trial& trial, std::optional<double> time) {
        if (!time_before_) time_before_ = step_time(plan_);
        Remedy remedy{.flags = flags_of(rungs),
                      .overall_peak_device = trial.memory.overall_peak_device,
                      .capacity = trial.memory.capacity,
                      .verdict = trial.memory.verdict,
                      .step_time_ratio = ratio(time, time_before_)};
        for (const Rung& rung : rungs)
            remedy.needs_hardware = remedy.needs_hardware || rung.ladder->needs_hardware;
        remedy.price = price_in_words(rungs, plan_.scenario.world_size(), trial.gpus, remedy.step_time_ratio);
        return remedy;
    }

    const Plan& plan_;
    std::string scenario_;
    std::vector<Ladder> ladders_;
    Ladder sequences_;
    std::map<std::string, std::optional<Trial>> trials_;  ///< by flags
    std::uint64_t operations_left_;
    std::optional<double> time_before_;
    std::vector<Remedy> found_;
    std::vector<Rung> closest_;
    double closest_excess_ = 0;
};

}  // namespace

std::vector<Remedy> find_remedies(const Plan& plan, std::uint64_t most_operations) {
    if (plan.memory.verdict != Verdict::does_not_fit) return {};
    return Search(plan, most_operations).run();
}

}  // namespace zeroplan
