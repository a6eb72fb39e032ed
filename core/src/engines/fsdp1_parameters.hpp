#pragma once
#include <deque>
#include <vector>

#include "engines/fsdp1_flat.hpp"
#include "engines/process_group.hpp"
#include "engines/program_builder.hpp"
#include "engines/torch_step.hpp"

namespace zeroplan {

/// Where FSDP1's flat parameters are: sharded between their uses, gathered while a block runs.
/// source: torch/distributed/fsdp: _flat_param.py, _runtime_utils.py, _limiter_utils.py (PyTorch 2.6)
class Fsdp1Parameters {
public:
    Fsdp1Parameters(const Scenario& scenario, const std::vector<FlatParameter>& flats,
                    ProgramBuilder& builder, ProcessGroup& shard_group);

    /// A section of the step begins: nothing waits for what was gathered before it.
    void begin_section();
    /// Allocates this rank's shards and says to `optimizer` which it trains.
    void load(TorchOptimizer& optimizer);

    /// Gathers a unit, if it isn't.
    void unshard(std::uint32_t unit);
    /// What a use of the units has to wait for.
    std::vector<OperationId> gather_events(const std::vector<std::uint32_t>& units) const;
    void reshard(std::uint32_t unit);
    /// Frees what was given up, the oldest first, but for the last `keep` buffers.
    void free_given_up(std::size_t keep);

    /// The gathered parameter, else the shard.
    BufferId values(std::size_t flat) const {
        return places_[flat].whole != no_buffer ? places_[flat].whole : places_[flat].shard;
    }

private:
    struct Place {
        BufferId shard = no_buffer;  ///< resident; no_buffer on the host
        BufferId whole = no_buffer;  ///< gathered, or cast where nothing is sharded
        std::vector<OperationId> gathered;
    };
    struct GivenUp {
        BufferId buffer;
        std::vector<OperationId> after;
    };

    bool sharded() const { return training_.zero_stage > 0; }
    bool on_host() const { return training_.offload_parameters != OffloadTarget::none; }
    BufferId flatten_and_shard(const FlatParameter& flat);
    void unshard_flat(const FlatParameter& flat, Place& place);
    std::vector<BufferId> copies_of_shard(const FlatParameter& flat, BufferId shard);
    void bring_to_device(const FlatParameter& flat);
    OperationId gather(const FlatParameter& flat, BufferId source, BufferId whole);

    const ModelSpec& model_;
    const TrainingConfig& training_;
    const std::vector<FlatParameter>& flats_;
    ProgramBuilder& builder_;
    ProcessGroup& shard_group_;
    std::vector<Place> places_;  ///< by flat parameter
    std::deque<GivenUp> given_up_;
};

}  // namespace zeroplan
