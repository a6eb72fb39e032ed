#pragma once
#include <cstdint>
#include <vector>

#include "engines/program_builder.hpp"
#include "engines/torch_optimizer.hpp"
#include "zeroplan/model_spec.hpp"
#include "zeroplan/plan.hpp"
#include "zeroplan/training_config.hpp"

namespace zeroplan {

/// What one rank's optimizer sees of a parameter.
struct OwnedParameter {
    std::uint32_t parameter = 0;  ///< index into ModelSpec::parameters
    std::uint32_t unit = 0;
    std::uint32_t position = 0;  ///< 1 + place among the unit's parameters, for names; 0: the whole unit
    std::uint64_t elements = 0;  ///< owned, without padding
    std::vector<std::uint64_t> shape;  ///< of the owned part
    BufferId values = no_buffer;       ///< no_buffer: on the host
    BufferId gradient = no_buffer;     ///< set before every step
    OperationId sent = 0;              ///< the gradient's copy to the host, in section `sent_in`
    std::uint32_t sent_in = 0;
    std::vector<BufferId> states;
    std::vector<Orthogonalised> matrices{};  ///< Muon: what its update is made orthogonal as
    std::uint64_t gathered = 0;  ///< elements of all ranks, to be gathered for that; 0: it is whole
};

/// A trained parameter as Muon sees it, where that is the optimizer: a hidden matrix, which `ranks` store in
/// parts of `padded` elements.
void add_matrix(OwnedParameter& owned, const TrainingConfig& training, const ModelSpec& model,
                std::uint64_t padded, std::uint64_t ranks);

/// Optimizers of low-bit states have kernels for the device alone: states in unified memory go there and
/// back (bitsandbytes.optim.PagedAdamW8bit).
bool pages_states(const TrainingConfig& training);

/// The optimizer of a torch engine: states created at the first step, temporaries, one update a parameter.
class TorchOptimizer {
public:
    TorchOptimizer(const TrainingConfig& training, ProgramBuilder& builder)
        : training_(training), builder_(builder) {}

    /// Adds a trained parameter and declares its states, without the share that is offloaded.
    void add(OwnedParameter parameter);
    std::vector<OwnedParameter>& parameters() { return parameters_; }
    const std::vector<OwnedParameter>& parameters() const { return parameters_; }

    /// Updates every parameter whose gradient is on the device, with the temporaries of its implementation.
    void step();
    /// Updates one parameter (optimizer in backward).
    void step_one(const OwnedParameter& parameter);
    /// Backward has finished the parameter's gradient, which now goes to the host if it is stepped there.
    void gradient_complete(OwnedParameter& parameter);
    /// Some of the step is the host's.
    bool steps_on_host() const {
        return training_.offload_parameters != OffloadTarget::none || (offloads() && !pages_states());
    }

    /// Every state, in order of creation.
    std::vector<BufferId> states() const;
    /// Bytes of states that live on the host.
    std::uint64_t host_bytes() const { return host_bytes_; }

private:
    bool offloads() const {
        return training_.offload_optimizer != OffloadTarget::none && training_.offload_fraction > 0;
    }
    bool pages_states() const { return zeroplan::pages_states(training_); }
    std::uint64_t offloaded(const OwnedParameter& parameter) const;
    HostCopy gradient_copy(const OwnedParameter& parameter) const;
    OperationId issue_host_step(const OwnedParameter& parameter, std::uint64_t elements,
                                std::vector<OperationId> waits);
    void step_on_host(const OwnedParameter& parameter);
    void step_on_device(const OwnedParameter& parameter, std::uint64_t elements);
    std::vector<OperationId> gather_matrix(const OwnedParameter& parameter, BufferId whole);

    const TrainingConfig& training_;
    ProgramBuilder& builder_;
    std::vector<OwnedParameter> parameters_;
    std::uint64_t host_bytes_ = 0;
};

/// The allocations of `step`'s sections, with those of `states` put in front of operation `position` of its
/// last section: what the first step does to the allocator.
std::vector<Section> first_step_of(const std::vector<Section>& step, const std::vector<BufferId>& states,
                                   OperationId position);

/// cuBLAS takes a workspace from the caching allocator for every handle, and backward's thread has a handle
/// of its own: two of 32 MiB from compute capability 9.0 on, of 8 MiB + 128 KiB before
/// (aten/src/ATen/cuda/CublasHandlePool.cpp, getChosenWorkspaceSize).
std::uint64_t cublas_workspace_bytes(std::uint32_t compute_capability);
/// Allocates both; the last one, which products of either thread are given.
BufferId allocate_cublas_workspaces(ProgramBuilder& builder, std::uint32_t compute_capability);
Constant cublas_workspace_constant(const ClusterSpec& cluster);

}  // namespace zeroplan
