#pragma once
#include <deque>
#include <vector>

#include "engines/deepspeed_rank.hpp"

namespace zeroplan {

/// One module's turn in a micro-batch: an operator that has parameters.
struct ModuleVisit {
    std::vector<std::uint32_t> parameters;  ///< owners, each once
    friend bool operator==(const ModuleVisit&, const ModuleVisit&) = default;
};

/// Stage 3's gathering of parameters, once the order of modules is known (from the second micro-batch on):
/// each module's own before it runs, then as many of those that come as max_live_parameters and
/// prefetch_bucket_size allow; what no later module within max_reuse_distance needs is released after it.
/// source: deepspeed/runtime/zero/partitioned_param_coordinator.py, fetch_sub_module, release_sub_module
class DeepSpeedCoordinator {
public:
    DeepSpeedCoordinator(const DeepSpeedRank& rank, ProgramBuilder& builder, std::vector<ModuleVisit> trace);

    /// `values`: of parameters that stay gathered; `shards`: where every parameter's own part is, no_buffer
    /// on the host.
    void use(std::vector<BufferId> persistent, std::vector<BufferId> shards);
    bool is_persistent(std::uint32_t parameter) const { return persistent_[parameter]; }

    void begin_micro_batch();
    /// Before the module whose turn it is; nothing if it has been entered already.
    void enter();
    /// After it.
    void leave();
    /// Everything but what persists is released (reset_step).
    void end_micro_batch();
    /// What the next computation has to wait for.
    std::vector<OperationId> take_waits();
    BufferId values(std::uint32_t parameter) const { return whole_[parameter]; }
    /// Secondary shards (hpZ) are dropped with the step.
    void drop_secondary_shards();
    /// Most elements that were gathered at once, persistent ones included.
    std::uint64_t peak_live() const { return peak_live_; }

private:
    using Parameters = std::vector<std::uint32_t>;
    struct Fetch {
        Parameters parameters;
        BufferId flat = no_buffer;     ///< of several parameters, or of quantised ones
        std::vector<BufferId> copies;  ///< of shards that came from the host
    };

    std::uint64_t numel(std::uint32_t p) const { return rank_.model.parameters[p].numel; }
    std::uint64_t shard(std::uint32_t p) const { return stage3_shard_numel(numel(p), rank_.ranks); }
    DType stored(std::uint32_t p) const;
    Buffer gathered(std::uint32_t p, std::uint64_t elements) const;

    std::vector<OperationId> copied_to_secondary(const Parameters& parameters) const;
    void choose_persistent();
    void fetch(const Parameters& wanted);
    void bring_to_device(const Fetch& fetch);
    void wait_for(const Parameters& wanted);
    void assemble(Fetch& fetch);
    void prefetch();
    Parameters released_after(const ModuleVisit& visit) const;
    void release(std::uint32_t p);
    void free_released();

    const DeepSpeedRank& rank_;
    ProgramBuilder& builder_;
    std::vector<ModuleVisit> trace_;
    std::vector<std::pair<std::uint32_t, std::size_t>> queue_;  ///< parameter and its visit, in order of use
    std::vector<bool> persistent_;
    std::vector<BufferId> shards_, whole_, secondary_;
    struct Copied {
        OperationId operation = 0;
        std::uint32_t section = 0;
    };
    std::vector<Copied> copied_;             ///< into the secondary shard, by parameter
    std::vector<std::int64_t> last_passed_;  ///< by parameter: latest visit that the prefetcher has gone by
    std::deque<Fetch> in_flight_;
    std::vector<bool> live_;  ///< gathered or on the way
    std::size_t visit_ = 0, next_in_queue_ = 0;
    bool entered_ = false;
    std::uint64_t available_ = 0, persistent_numel_ = 0, peak_live_ = 0;
    std::vector<OperationId> waits_;
    struct GivenUp {
        BufferId buffer;
        std::vector<OperationId> after;
    };
    std::deque<GivenUp> given_up_;
};

}  // namespace zeroplan
