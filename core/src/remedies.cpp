#include "zeroplan/remedies.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <tuple>

#include <fmt/format.h>

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

/// Nothing where the time of such a step is not modelled.
std::optional<double> step_time(const Plan& plan) {
    try {
        double slowest = 0;
        for (std::uint32_t g = 0; g < plan.rank_groups.size(); ++g)
            slowest = std::max(slowest, closed_form_step(plan, g).step_time_s);
        return slowest;
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
                                  : fmt::format("{:+.0f} % step time", change);
}

std::string price_in_words(std::span<const Rung> rungs, const Plan& before, const Plan& after,
                           std::optional<double> step_time_ratio) {
    const std::uint64_t gpus = before.scenario.world_size(), more = after.scenario.world_size();
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

/// The share that is certainly needed: above 1 it does not fit.
double least(const Plan& plan) {
    return share(plan.memory.low, plan.memory.capacity);
}

class Search {
public:
    explicit Search(const Plan& plan)
        : plan_(plan), scenario_(scenario_json(plan.scenario)), ladders_(remedy_ladders(plan.scenario)) {}

    std::vector<Remedy> run() {
        for (const Ladder& ladder : ladders_) climb(ladder, std::nullopt, plan_);
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
        if (found_.empty() && closest_) found_.push_back(std::move(*closest_));
        return std::move(found_);
    }

private:
    /// The plan with the changes, or nothing where the engine or the cluster can't have them.
    std::optional<Plan> planned_with(std::span<const Rung> rungs) {
        std::vector<Setting> settings;
        for (const Rung& rung : rungs)
            settings.insert(settings.end(), rung.change->settings.begin(), rung.change->settings.end());
        try {
            return make_plan(resolve_scenario({.text = scenario_, .settings = std::move(settings)}));
        } catch (const Error&) {
            return std::nullopt;
        }
    }

    /// Up to the first change that fits together with `given`, or to one after which no other can.
    const Change* climb(const Ladder& ladder, std::optional<Rung> given, const Plan& from) {
        double before = excess(from);
        for (const Change& change : ladder.changes) {
            std::vector<Rung> rungs;
            if (given) rungs.push_back(*given);
            rungs.push_back({&ladder, &change});
            const auto plan = planned_with(rungs);
            if (!plan) continue;
            const double now = excess(*plan), gain = before - now;
            if (gain <= 0 && ladder.gradual) return nullptr;
            if (keep(rungs, *plan)) return &change;
            if (ladder.halving && least(*plan) - gain > 1) return nullptr;
            before = now;
        }
        return nullptr;
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
            const auto plan = planned_with({&first, 1});
            if (!plan) continue;
            if (const Change* second = climb(b, first, *plan)) soften(first, {&b, second});
            return;
        }
    }

    /// Puts the first change that helps beside `second` in place of the strongest one, which was kept.
    void soften(const Rung& strongest, const Rung& second) {
        for (const Change& change : strongest.ladder->changes) {
            if (&change == strongest.change) return;
            const std::array rungs{Rung{strongest.ladder, &change}, second};
            const auto plan = planned_with(rungs);
            if (!plan || plan->memory.verdict == Verdict::does_not_fit) continue;
            found_.pop_back();
            keep(rungs, *plan);
            return;
        }
    }

    /// True if the changes make it fit.
    bool keep(std::span<const Rung> rungs, const Plan& plan) {
        const bool fits = plan.memory.verdict != Verdict::does_not_fit;
        if (!fits && excess(plan) >= closest_excess_) return false;
        if (!time_before_) time_before_ = step_time(plan_);
        Remedy remedy{.flags = flags_of(rungs),
                      .overall_peak_device = plan.memory.overall_peak_device,
                      .capacity = plan.memory.capacity,
                      .verdict = plan.memory.verdict,
                      .step_time_ratio = ratio(step_time(plan), time_before_)};
        for (const Rung& rung : rungs)
            remedy.needs_hardware = remedy.needs_hardware || rung.ladder->needs_hardware;
        remedy.price = price_in_words(rungs, plan_, plan, remedy.step_time_ratio);
        if (fits) {
            found_.push_back(std::move(remedy));
        } else {
            closest_excess_ = excess(plan);
            closest_ = std::move(remedy);
        }
        return fits;
    }

    const Plan& plan_;
    std::string scenario_;
    std::vector<Ladder> ladders_;
    std::optional<double> time_before_;
    std::vector<Remedy> found_;
    std::optional<Remedy> closest_;
    double closest_excess_ = std::numeric_limits<double>::infinity();
};

}  // namespace

std::vector<Remedy> find_remedies(const Plan& plan) {
    if (plan.memory.verdict != Verdict::does_not_fit) return {};
    return Search(plan).run();
}

}  // namespace zeroplan
