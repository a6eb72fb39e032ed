#include "zeroplan/runner/host_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>

#include "checkpoint.hpp"
#include "host_executor.hpp"
#include "matrix_product.hpp"
#include "run_length.hpp"
#include "sha256.hpp"
#include "zeroplan/runner/process_memory.hpp"

namespace zeroplan::runner {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

Dataset dataset_of(const Scenario& scenario) {
    return {scenario.run.data, scenario.run.seed, scenario.model.feature_width,
            !scenario.model.target_is_input};
}

std::vector<int> everybody(int size) {
    std::vector<int> ranks(static_cast<std::size_t>(size));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
}

/// The longest side of any matrix of the model's products.
std::size_t longest_side(const Scenario& scenario) {
    std::uint64_t longest = scenario.training.micro_batch_size;
    for (const BlockKind& kind : scenario.model.block_kinds)
        for (const Operator& op : kind.operators)
            longest = std::max({longest, op.in_features, op.out_features});
    return longest;
}

/// Values of one type that every rank contributes one of.
template <typename T>
std::vector<T> all_gather(HostCommunicator& communicator, const T& mine) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> all(static_cast<std::size_t>(communicator.size()));
    communicator.all_gather(&mine, all.data(), sizeof(T), DType::uint8);
    return all;
}

std::string broadcast_text(HostCommunicator& communicator, std::string text, int root) {
    std::uint64_t length = text.size();
    communicator.broadcast(&length, sizeof(length), DType::uint8, root);
    text.resize(length);
    communicator.broadcast(text.data(), length, DType::uint8, root);
    return text;
}

/// A run of one rank, phase by phase.
class RankRun {
public:
    RankRun(const Plan& plan, HostWorld& world, const HostRunOptions& options)
        : plan_(plan),
          options_(options),
          dataset_(dataset_of(plan.scenario)),
          arena_(options.fill),
          control_(world, everybody(world.size()), "control"),
          executor_(plan, world, dataset_, arena_) {}

    HostRun run() {
        const Clock::time_point begin = Clock::now();
        if (control_.rank() == 0 && !plan_.scenario.run.checkpoint.empty())
            checkpoint_.emplace(plan_.scenario.run.checkpoint, plan_.scenario.model);
        settle();
        executor_.load();
        train();
        save();
        measure();
        result_.report.backend = "host";
        result_.report.steps_per_epoch = executor_.schedule().steps_per_epoch();
        result_.report.world_size = static_cast<std::uint64_t>(control_.size());
        result_.report.wall_s = seconds_since(begin);
        return std::move(result_);
    }

private:
    /// Everything that takes memory outside the arena takes it now, before the process's peak is reset.
    void settle() {
        warm_matrix_library(longest_side(plan_.scenario));
        control_.barrier();
        if (!reset_process_peak() && options_.on_warning)
            options_.on_warning(
                "this kernel doesn't permit resetting a process's memory peak (/proc/self/clear_refs): the "
                "growth of "
                "the process is counted from its peak at start");
        process_peak_at_start_ = process_memory().peak;
    }

    void train() {
        const std::uint64_t steps = step_count(plan_.scenario.run, executor_.schedule());
        // Once and for all: growing would hold them twice, which check_run_length() doesn't count.
        result_.report.losses.reserve(steps);
        result_.report.step_times_s.reserve(steps);
        for (std::uint64_t step = 0; step < steps; ++step) {
            // A steady step is any but the first, where there is another.
            if (step <= 1) arena_.start_window();
            const bool traced = options_.trace && step + 1 == steps;
            Trace trace;
            const Clock::time_point begin = Clock::now();
            executor_.step(step, traced ? &trace : nullptr);
            finish_step({step + 1, steps, 0}, seconds_since(begin));
            if (traced) collect(trace, begin);
        }
        steady_ = arena_.window_peak();  // before saving, which may take more
        resident_ = arena_.live().total();
    }

    void finish_step(StepProgress progress, double seconds) {
        struct Part {
            double loss_sum, samples, seconds;
        };
        Part total{0, 0, 0};
        for (const Part& part : all_gather(
                 control_, Part{executor_.loss_sum(), static_cast<double>(executor_.samples()), seconds})) {
            total.loss_sum += part.loss_sum;
            total.samples += part.samples;
            total.seconds = std::max(total.seconds, part.seconds);
        }
        progress.loss = total.loss_sum / total.samples;
        if (!std::isfinite(progress.loss))
            throw Error(ErrorCode::run_failed,
                        fmt::format("the loss of step {} is not a finite number", progress.step),
                        fmt::format("training diverges: lower /run/learning_rate, which is {}",
                                    plan_.scenario.run.learning_rate));
        result_.report.losses.push_back(progress.loss);
        result_.report.step_times_s.push_back(total.seconds);
        if (options_.on_step) options_.on_step(progress);
    }

    void collect(const Trace& trace, Clock::time_point begin) {
        const auto origins = all_gather(control_, begin.time_since_epoch().count());
        const Clock::time_point origin{Clock::duration{*std::min_element(origins.begin(), origins.end())}};
        const std::string mine = trace_events_json(trace, control_.rank(), origin);
        std::vector<std::string> events;
        for (int rank = 0; rank < control_.size(); ++rank)
            events.push_back(broadcast_text(control_, rank == control_.rank() ? mine : "", rank));
        if (control_.rank() == 0) result_.trace = trace_file_json(events);
    }

    /// A checkpoint that can't be kept costs nobody the losses and figures of the run.
    template <typename Work>
    void keep(Work work) {
        if (!checkpoint_ || result_.checkpoint_failure) return;
        try {
            work(*checkpoint_);
        } catch (const Error& error) {
            result_.checkpoint_failure = error;
        }
    }

    void save() {
        Sha256 hash;
        executor_.save([&](const float* values, std::size_t n) {
            if (control_.rank() != 0) return;
            hash.add(values, n * sizeof(float));
            keep([&](CheckpointWriter& checkpoint) { checkpoint.write(values, n); });
        });
        keep([](CheckpointWriter& checkpoint) { checkpoint.commit(); });
        result_.report.final_parameters_sha256 =
            broadcast_text(control_, control_.rank() == 0 ? hash.finish() : "", 0);
    }

    /// A RankMeasurement as plain bytes.
    struct Measured {
        std::uint64_t peak, at_peak[category_count], resident, process_peak, process_peak_planned;
    };

    void measure() {
        Measured mine{
            steady_.allocated.count(), {}, resident_.count(), 0, arena_.overall_peak().allocated.count()};
        for (const Category category : all_categories)
            mine.at_peak[static_cast<std::size_t>(category)] = steady_.at_peak[category].count();
        const Bytes peak = process_memory().peak;
        mine.process_peak = peak > process_peak_at_start_ ? (peak - process_peak_at_start_).count() : 0;

        for (const Measured& measured : all_gather(control_, mine)) {
            RankMeasurement rank{.rank = result_.report.ranks.size(),
                                 .peak_allocated = Bytes{measured.peak},
                                 .resident = Bytes{measured.resident},
                                 .process_peak = Bytes{measured.process_peak},
                                 .process_peak_planned = Bytes{measured.process_peak_planned}};
            for (const Category category : all_categories)
                rank.at_peak[category] = Bytes{measured.at_peak[static_cast<std::size_t>(category)]};
            result_.report.ranks.push_back(rank);
        }
    }

    const Plan& plan_;
    const HostRunOptions& options_;
    Dataset dataset_;
    Arena arena_;
    HostCommunicator control_;
    HostExecutor executor_;
    std::optional<CheckpointWriter> checkpoint_;
    Bytes process_peak_at_start_, resident_;
    ArenaPeak steady_;
    HostRun result_;
};

}  // namespace

void check_host_run(const Scenario& scenario) {
    if (scenario.training.engine != EngineKind::native)
        throw Error(ErrorCode::not_supported,
                    fmt::format("the host runner executes the plans of engine native, not of {}",
                                to_string(scenario.training.engine)),
                    "use --engine native; plan knows the other engines", {"", "/training/engine"});
    check_operators(scenario.model);
    if (scenario.training.sequence_length != 1)
        throw Error(ErrorCode::not_supported,
                    fmt::format("a sample of a plain stack is one row, not a sequence of {}",
                                scenario.training.sequence_length),
                    "leave sequence_length out", {"", "/training/sequence_length"});
    if (!scenario.cluster.gpu.is_host || scenario.cluster.nodes != 1)
        throw Error(ErrorCode::not_supported,
                    fmt::format("the host runner runs on this machine, not on {} of {}",
                                scenario.cluster.nodes, scenario.cluster.topology),
                    "use the topology host", {"", "/cluster"});
    check_run_length(scenario, dataset_of(scenario), available_memory());
}

HostRun run_on_host(const Plan& plan, HostWorld& world, const HostRunOptions& options) {
    try {
        RankRun run(plan, world, options);
        try {
            return run.run();
        } catch (const PeerFailure&) {
            throw;
        } catch (const std::exception& error) {
            // Before the streams' threads are waited for: they wait for the other ranks, which this tells.
            world.report_failure(fmt::format("has failed: {}", error.what()));
            throw;
        }
    } catch (const PeerFailure&) {
        throw;
    } catch (const std::exception& error) {
        world.report_failure(fmt::format("has failed: {}", error.what()));
        throw;
    }
}

}  // namespace zeroplan::runner
