#include "executor.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "compat.hpp"
#include "fabric.hpp"

namespace zeroplan::sim {
namespace {

namespace sg = compat::sg;

/// Creates an activity only when its node is ready: SimGrid 3.32 searches all live activities at every
/// completion. Plain durations are timers of the kernel, which cost least.
class Executor {
public:
    Executor(const StepGraph& graph, const Fabric& fabric, NodeTime* times, Execution& execution)
        : graph_(graph),
          fabric_(fabric),
          times_(times),
          execution_(execution),
          waits_for_(graph.nodes.size()),
          flow_of_(graph.nodes.size()),
          gpus_(graph.gpus),
          work_(graph.nodes.size()) {
        compat::on_comm_completion([this](const sg::Activity& activity) { flow_completed(activity); });
    }

    void run(sg::Engine& engine) {
        job_left_ = graph_.background;
        begin(0, graph_.background);
        begin_background();
        start_ready();
        engine.run();
        last_completed_ = nullptr;
    }

private:
    /// Makes the nodes from `first` up to `last` ready to run, once more if they have run.
    void begin(std::uint32_t first, std::uint32_t last) {
        for (std::uint32_t i = first; i < last; ++i) {
            waits_for_[i] = graph_.nodes[i].waits_for;
            if (waits_for_[i] == 0) ready_.push_back(i);
        }
    }

    void begin_background() {
        background_left_ = static_cast<std::uint32_t>(graph_.nodes.size()) - graph_.background;
        background_began_ = sg::Engine::get_clock();
        if (job_left_ > 0) begin(graph_.background, static_cast<std::uint32_t>(graph_.nodes.size()));
    }

    /// A step that takes no time would never let the clock go on.
    void background_step_ended() {
        if (job_left_ == 0) return;
        ++execution_.background_steps;
        execution_.background_s = sg::Engine::get_clock();
        if (sg::Engine::get_clock() > background_began_) begin_background();
    }

    void start_ready() {
        if (starting_) return;  // a node of no duration ends inside its own start
        starting_ = true;
        while (!ready_.empty()) {
            const std::uint32_t node = ready_.back();
            ready_.pop_back();
            start(node);
        }
        starting_ = false;
    }

    void start(std::uint32_t node) {
        if (job_left_ == 0) return;  // what the other job still has to do is of no interest
        times_[node].start_s = sg::Engine::get_clock();
        const StepGraph::Node& n = graph_.nodes[node];
        if (n.collective == no_collective) {
            if (n.gpu != StepGraph::no_gpu && n.work.seconds > 0)
                begin_work(node);
            else
                after(n.work.seconds, [this, node] { finish(node); });
            return;
        }
        begin_on_gpus(n.collective);
        const CollectiveCost& cost = graph_.flows[n.collective].cost;
        if (!fabric_.has_flow(n.collective)) {
            after(cost.seconds(), [this, node] { finish(node); });
            return;
        }
        after(cost.start_s(), [this, node] { start_flow(node); });
    }

    template <typename Function>
    void after(double seconds, Function function) {
        if (seconds <= 0) {
            function();
            return;
        }
        in(seconds, function);
    }

    /// The same, but never at once.
    template <typename Function>
    void in(double seconds, Function function) {
        simgrid::kernel::timer::Timer::set(sg::Engine::get_clock() + seconds, [this, function] {
            function();
            start_ready();
        });
    }

    /// Work that a timer ends, which is set anew where collectives change its speed.
    struct Work {
        double since_s = 0, left_s = 0, slow_down = 1;
        std::uint32_t timer = 0;  ///< number of the one that counts
    };
    /// What runs on the GPUs of a class.
    struct Gpu {
        std::vector<std::uint32_t> flows;  ///< in progress, by number
        std::vector<std::uint32_t> work;   ///< nodes
    };

    GpuShares taken(const Gpu& gpu) const {
        GpuShares sum;
        for (const std::uint32_t flow : gpu.flows) sum.add(graph_.flows[flow].shares);
        return sum;
    }

    void begin_on_gpus(std::uint32_t flow) {
        for (const std::uint32_t gpu : graph_.flows[flow].classes) {
            gpus_[gpu].flows.push_back(flow);
            set_speeds(gpus_[gpu]);
        }
    }

    void end_on_gpus(std::uint32_t flow) {
        for (const std::uint32_t gpu : graph_.flows[flow].classes) {
            std::vector<std::uint32_t>& flows = gpus_[gpu].flows;
            flows.erase(std::find(flows.begin(), flows.end(), flow));
            set_speeds(gpus_[gpu]);
        }
    }

    void begin_work(std::uint32_t node) {
        const StepGraph::Node& n = graph_.nodes[node];
        Gpu& gpu = gpus_[n.gpu];
        gpu.work.push_back(node);
        work_[node] = {.since_s = sg::Engine::get_clock(),
                       .left_s = n.work.seconds,
                       .slow_down = slow_down(n.work, taken(gpu)),
                       .timer = work_[node].timer};
        set_timer(node);
    }

    void set_timer(std::uint32_t node) {
        const std::uint32_t number = ++work_[node].timer;
        in(std::max(0.0, work_[node].left_s) * work_[node].slow_down, [this, node, number] {
            if (number == work_[node].timer) end_work(node);
        });
    }

    void end_work(std::uint32_t node) {
        std::erase(gpus_[graph_.nodes[node].gpu].work, node);
        finish(node);
    }

    /// A collective begins or ends on its GPUs: work there goes on at another speed.
    void set_speeds(const Gpu& gpu) {
        const GpuShares shares = taken(gpu);
        const double now = sg::Engine::get_clock();
        for (const std::uint32_t node : gpu.work) {
            Work& work = work_[node];
            const double longer = slow_down(graph_.nodes[node].work, shares);
            if (longer == work.slow_down) continue;
            work.left_s -= (now - work.since_s) / work.slow_down;
            work.since_s = now;
            work.slow_down = longer;
            set_timer(node);
        }
    }

    void start_flow(std::uint32_t node) {
        sg::CommPtr comm = fabric_.create_flow(graph_.nodes[node].collective);
        comm->set_data(&times_[node]);
        flow_of_[node] = comm;
        fabric_.launch(*comm, graph_.nodes[node].collective);
    }

    void flow_completed(const sg::Activity& activity) {
        const auto* time = activity.get_data<NodeTime>();
        const auto node = static_cast<std::uint32_t>(time - times_);
        // SimGrid still uses the activity after this callback: it lives until the next one.
        last_completed_ = std::move(flow_of_[node]);
        finish(node);
        start_ready();
    }

    void finish(std::uint32_t node) {
        times_[node].end_s = sg::Engine::get_clock();
        if (graph_.nodes[node].collective != no_collective) end_on_gpus(graph_.nodes[node].collective);
        const bool in_background = node >= graph_.background;
        if (!in_background) {
            execution_.finished.fetch_add(1, std::memory_order_relaxed);
            --job_left_;
        }
        for (std::uint32_t k = graph_.first_successor[node]; k < graph_.first_successor[node + 1]; ++k)
            if (--waits_for_[graph_.successors[k]] == 0) ready_.push_back(graph_.successors[k]);
        if (in_background && --background_left_ == 0) background_step_ended();
    }

    const StepGraph& graph_;
    const Fabric& fabric_;
    NodeTime* times_;
    Execution& execution_;
    std::uint32_t job_left_ = 0, background_left_ = 0;  ///< nodes that have not ended
    double background_began_ = 0;
    std::vector<std::uint32_t> waits_for_;
    std::vector<sg::CommPtr> flow_of_;
    std::vector<Gpu> gpus_;
    std::vector<Work> work_;  ///< by node
    sg::CommPtr last_completed_;
    std::vector<std::uint32_t> ready_;
    bool starting_ = false;
};

}  // namespace

void execute_on_simgrid(const StepGraph& graph, NodeTime* times, Execution& execution) {
    std::string name = "zeroplan-sim";
    char* arguments[] = {name.data(), nullptr};
    int count = 1;
    sg::Engine engine(&count, arguments);
    compat::configure();
    const Fabric fabric(engine, graph);
    Executor executor(graph, fabric, times, execution);
    executor.run(engine);
    if (execution.finished != graph.background)
        throw Error(ErrorCode::run_failed, fmt::format("the simulation stopped after {} of {} operations",
                                                       execution.finished.load(), graph.background));
}

}  // namespace zeroplan::sim
