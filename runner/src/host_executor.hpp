#pragma once
#include <array>
#include <functional>
#include <memory>

#include "buffer_table.hpp"
#include "compute.hpp"
#include "dataset.hpp"
#include "group_communicators.hpp"
#include "initial_values.hpp"
#include "optimizer.hpp"
#include "trace.hpp"
#include "zeroplan/plan.hpp"
#include "zeroplan/runner/stream_thread.hpp"

namespace zeroplan::runner {

/// Executes one rank's step program literally. Compute runs on the calling thread, which is the host that
/// issues; the gather and reduce streams have a thread and communicators of their own. Memory is allocated
/// and freed where the program says so, and nowhere else.
class HostExecutor {
public:
    HostExecutor(const Plan& plan, HostWorld& world, const Dataset& dataset, Arena& arena);
    HostExecutor(const HostExecutor&) = delete;
    HostExecutor& operator=(const HostExecutor&) = delete;
    ~HostExecutor();

    /// Allocates what stays resident and fills it with the initial values.
    void load();
    /// One step, counted from 0: all its micro-batches and the optimizer's step. `trace` may be nullptr.
    void step(std::uint64_t number, Trace* trace);
    /// Sum of the losses, and number, of the samples of the last step.
    double loss_sum() const { return batch_.loss_sum; }
    std::uint64_t samples() const { return samples_; }

    /// Receives the model's parameters as fp32, in registration order, tied ones once, piece by piece.
    using ParameterSink = std::function<void(const float* values, std::size_t n)>;
    /// Runs the program's `save`. Every rank takes part; each gets all parameters.
    void save(const ParameterSink& sink);

    const BatchSchedule& schedule() const { return schedule_; }

private:
    /// How to wait for an operation that has been issued: not at all, or for a stream.
    struct Issued {
        StreamThread* stream = nullptr;
        StreamThread::Ticket ticket = 0;
    };

    void run(const Section& section);
    Issued issue(const Operation& operation);
    void wait_for(const std::vector<OperationId>& operations) const;
    /// Runs `work` on the operation's stream once everything it waits for has ended.
    Issued dispatch(const Operation& operation, std::function<void()> work);
    /// `work`, recorded if this step is traced.
    std::function<void()> traced(const Operation& operation, std::function<void()> work);
    void trace_memory();

    void allocate(BufferId buffer);
    void initialise(BufferId buffer);
    void release(BufferId buffer);
    void load_batch(const LoadBatch& load);
    void communicate(const Collective& collective, Stream stream);
    void accumulate(const Accumulate& accumulate, bool first_micro_batch);
    void update(const OptimizerStep& step);

    void* address(const Operand& operand) const;
    std::uint64_t elements(const Operand& operand) const;
    void save_resident_until(std::uint32_t unit);
    void save_unit(std::uint32_t unit, BufferId buffer);
    BufferId resident_values(std::uint32_t unit) const;

    const Plan& plan_;
    const StepProgram& program_;
    const Dataset& dataset_;
    Arena& arena_;
    ShardPlace place_;
    BatchSchedule schedule_;
    InitialValues initial_;
    BufferTable buffers_;
    GroupCommunicators communicators_;

    std::vector<Issued> issued_;  ///< of the section that is running
    std::uint64_t step_ = 0, micro_batches_loaded_ = 0, samples_ = 0;
    MicroBatch batch_;  ///< its loss is the step's
    Trace* trace_ = nullptr;
    const ParameterSink* sink_ = nullptr;
    std::uint32_t next_saved_unit_ = 0;
    std::vector<float> row_;  ///< one sample, before it is rounded to the batch's dtype

    // Last: their threads use everything above.
    std::array<std::unique_ptr<StreamThread>, stream_count> streams_;
};

/// The program of a rank.
const StepProgram& program_of(const Plan& plan, std::uint64_t rank);

}  // namespace zeroplan::runner
