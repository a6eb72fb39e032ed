#include "run_length.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "zeroplan/error.hpp"

namespace zeroplan::runner {
namespace {

/// A loss and a time (RunReport), which every rank keeps.
constexpr std::uint64_t kept_bytes_a_step = 2 * sizeof(double);
/// The same two in the report of rank 0: as values of nlohmann::json, 16 bytes each, and as text of up to 24
/// characters each.
constexpr std::uint64_t report_bytes_a_step = 2 * (16 + 24);

Error refused(std::string message, std::string hint, const char* pointer) {
    return {ErrorCode::invalid_input, std::move(message), std::move(hint), {"", pointer}};
}

/// Where the number of steps comes from: what the hint is about is what the user may change.
const char* pointer_of(const RunConfig& run, const BatchSchedule& schedule, std::uint64_t steps) {
    if (run.steps && *run.steps == steps) return "/run/steps";
    return run.epochs > schedule.steps_per_epoch() ? "/run/epochs" : "/run/data";
}

}  // namespace

BatchSchedule schedule_of(const Scenario& scenario, const Dataset& dataset) {
    const TrainingConfig& training = scenario.training;
    return {dataset.rows(), training.data_parallel, training.micro_batch_size,
            training.gradient_accumulation_steps};
}

std::uint64_t step_count(const RunConfig& run, const BatchSchedule& schedule) {
    const std::uint64_t all = checked_product(run.epochs, schedule.steps_per_epoch(), "steps");
    return run.steps ? std::min(*run.steps, all) : all;
}

void check_run_length(const Scenario& scenario, const Dataset& dataset, Bytes available) {
    const BatchSchedule schedule = schedule_of(scenario, dataset);
    if (schedule.micro_batches > dataset.rows())
        throw refused(fmt::format("a step has {} micro-batches, but the data has {} samples",
                                  schedule.micro_batches, dataset.rows()),
                      "micro-batches without a sample train nothing: lower it, or give more data",
                      "/training/gradient_accumulation_steps");
    const std::uint64_t steps = step_count(scenario.run, schedule);
    const std::uint64_t ranks = schedule.ranks;
    const Bytes needed = steps * Bytes{ranks * kept_bytes_a_step + report_bytes_a_step};
    if (needed > available)
        throw refused(fmt::format("{} epochs of {} samples are {} steps, whose losses and times take {}, and "
                                  "this machine has {} left",
                                  scenario.run.epochs, dataset.rows(), steps, format_bytes(needed),
                                  format_bytes(available)),
                      "state /run/steps, or give fewer epochs, fewer samples or a larger micro-batch",
                      pointer_of(scenario.run, schedule, steps));
}

}  // namespace zeroplan::runner
