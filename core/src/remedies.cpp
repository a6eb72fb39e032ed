#include "zeroplan/remedies.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include <fmt/format.h>

#include "remedy_ladders.hpp"
#include "zeroplan/step_timeline.hpp"

namespace zeroplan {
namespace {

constexpr std::size_t most_remedies = 3;

/// The plan of the scenario with the change, or nothing where the engine or the cluster can't have it.
std::optional<Plan> planned_with(const std::string& scenario, const Change& change) {
    try {
        return make_plan(resolve_scenario({.text = scenario, .settings = change.settings}));
    } catch (const Error&) {
        return std::nullopt;
    }
}

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

std::string price_in_words(const Ladder& ladder, const Plan& before, const Plan& after,
                           std::optional<double> step_time_ratio) {
    std::string text = ladder.price;
    const std::uint64_t gpus = before.scenario.world_size(), more = after.scenario.world_size();
    if (more > gpus) text = fmt::format("{} GPUs, not {}", format_count(more), format_count(gpus));
    if (!step_time_ratio) return text;
    const double change = 100 * (*step_time_ratio - 1);
    text += change < 0.5 && change > -0.5
                ? std::string("; step as long")
                : fmt::format("; step {:.0f} % {}", std::abs(change), change < 0 ? "shorter" : "longer");
    return text;
}

class Search {
public:
    explicit Search(const Plan& plan) : plan_(plan), scenario_(scenario_json(plan.scenario)) {}

    std::vector<Remedy> run() {
        for (const Ladder& ladder : remedy_ladders(plan_.scenario)) climb(ladder);
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
    /// Up to the first change that fits, or to one of a gradual ladder that comes no closer.
    void climb(const Ladder& ladder) {
        double before = excess(plan_.memory);
        for (const Change& change : ladder.changes) {
            const auto plan = planned_with(scenario_, change);
            if (!plan) continue;
            const double now = excess(plan->memory);
            if (now >= before && ladder.gradual) return;
            before = now;
            const bool helps = plan->memory.verdict != Verdict::does_not_fit;
            if (helps || now < closest_excess_) keep(ladder, change, *plan, helps);
            if (helps) return;
        }
    }

    void keep(const Ladder& ladder, const Change& change, const Plan& plan, bool helps) {
        if (!time_before_) time_before_ = step_time(plan_);
        Remedy remedy{.flags = change.flags,
                      .overall_peak_device = plan.memory.overall_peak_device,
                      .capacity = plan.memory.capacity,
                      .verdict = plan.memory.verdict,
                      .step_time_ratio = ratio(step_time(plan), time_before_),
                      .needs_hardware = ladder.needs_hardware};
        remedy.price = price_in_words(ladder, plan_, plan, remedy.step_time_ratio);
        if (helps) {
            found_.push_back(std::move(remedy));
        } else {
            closest_excess_ = excess(plan.memory);
            closest_ = std::move(remedy);
        }
    }

    /// What is needed over what there is.
    static double excess(const MemorySummary& memory) {
        return static_cast<double>(memory.high.count()) / static_cast<double>(memory.capacity.count());
    }

    const Plan& plan_;
    std::string scenario_;
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
