#pragma once
#include <optional>
#include <vector>

#include "engines/autograd_gradients.hpp"
#include "engines/deepspeed_layout.hpp"
#include "engines/deepspeed_options.hpp"
#include "engines/program_builder.hpp"
#include "engines/tied_embedding.hpp"

namespace zeroplan {

/// What decides one rank's program.
struct DeepSpeedRank {
    const ModelSpec& model;          ///< the rank's part
    const TrainingConfig& training;  ///< sequence_length is the rank's own
    const DeepSpeedOptions& options;
    const FlatGroup& group;             ///< of stages 0 to 2
    std::uint64_t ranks = 1, rank = 0;  ///< of the shard group, and which one this is
    std::uint64_t replicas = 1;
    bool pipelined = false;
    PartitionShare share{};  ///< of the ranks that the program stands for, at stages 1 and 2
    std::optional<std::uint32_t> tied_copy{};  ///< StageModel's
};

/// True if the rank's training keeps the optimizer's part on the host.
inline bool offloads_optimizer(const DeepSpeedRank& rank) {
    return rank.training.offload_optimizer != OffloadTarget::none;
}

/// The unit behind every parameter's own: the flat tensor (deepspeed_layout).
inline std::uint32_t flat_unit(const ModelSpec& model) {
    return static_cast<std::uint32_t>(model.parameters.size());
}

/// Of tied_copy, which `buffer` holds.
TiedGradient tied_gradient(const DeepSpeedRank& rank, BufferId buffer, DType dtype);

/// A buffer of the flat group or of one partition of it.
Buffer flat_buffer(const DeepSpeedRank& rank, BufferRole role, Category category, DType dtype,
                   std::uint64_t elements);

/// The model as it is built and moved to the device, and its trained parameters as one flat tensor.
class DeepSpeedParameters {
public:
    DeepSpeedParameters(const DeepSpeedRank& rank, ProgramBuilder& builder);

    /// Every parameter a tensor of its own.
    void load();
    /// The trained ones move into the flat tensor. `copies`: how often DeepSpeed copies them on the way.
    void flatten(std::uint32_t copies);
    /// Where a parameter's values are.
    BufferId values(std::uint32_t parameter) const { return values_[parameter]; }
    BufferId flat() const { return flat_; }

private:
    const DeepSpeedRank& rank_;
    ProgramBuilder& builder_;
    std::vector<BufferId> values_;  ///< by parameter
    BufferId flat_ = no_buffer;
};

/// States of the optimizer over `elements` master weights, declared: those of `parameters` at stage 3.
std::vector<BufferId> declare_flat_states(const DeepSpeedRank& rank, ProgramBuilder& builder,
                                          std::uint64_t elements,
                                          const std::vector<std::uint32_t>& parameters = {});

/// The optimizer's update of the flat master weights, with its temporaries. `matrices`: Muon's.
void flat_optimizer_step(const DeepSpeedRank& rank, ProgramBuilder& builder, BufferId master,
                         BufferId gradients, const std::vector<BufferId>& states, std::uint64_t elements,
                         const std::vector<Orthogonalised>& matrices = {});

/// After the step every rank gathers the other partitions into the flat tensor, in place.
void gather_partitions(const DeepSpeedRank& rank, ProgramBuilder& builder, BufferId flat);

/// A tensor that is taken and given back at once.
void take_and_give_back(ProgramBuilder& builder, Category category, DType dtype, std::uint64_t elements);

}  // namespace zeroplan
