#include "engines/megatron_workspaces.hpp"

#include <utility>

#include "engines/megatron_context.hpp"

namespace zeroplan {
namespace {

constexpr std::uint64_t mib = 1ULL << 20;
constexpr std::uint32_t hopper = 90;
/// Streams over which Transformer Engine spreads a grouped product (nvte_get_num_compute_streams).
constexpr std::size_t grouped_streams = 4;

/// at::cuda::_parseChosenWorkspaceSize: 32 MiB from Hopper on; before, :4096:2:16:8. Megatron's deterministic
/// mode asks for CUBLAS_WORKSPACE_CONFIG=:4096:8.
std::uint64_t torch_workspace_bytes(std::uint32_t compute_capability, bool deterministic) {
    if (deterministic || compute_capability >= hopper) return 8 * 4096 * 1024;
    return 2 * 4096 * 1024 + 8 * 16 * 1024;
}

/// transformer_engine/pytorch: get_cublas_workspace_size_bytes.
std::uint64_t transformer_engine_workspace_bytes(std::uint32_t compute_capability) {
    return compute_capability >= hopper ? 32 * mib + 1024 : 4 * mib;
}

Constant workspace(const char* name, std::uint64_t bytes, const char* source) {
    return {name, static_cast<double>(bytes), "B", source, "exact rule"};
}

}  // namespace

MegatronWorkspaces megatron_workspaces(const Scenario& scenario, const MegatronOptions& options,
                                       bool torch_products, bool grouped_products) {
    MegatronWorkspaces result;
    // Before PyTorch 1.11 cuBLAS took its workspace from the driver, outside the allocator.
    if (options.generation == MegatronGeneration::lm_2021 || scenario.cluster.gpu.is_host) return result;
    const std::uint32_t capability = scenario.cluster.gpu.compute_capability;
    if (torch_products) {
        const std::uint64_t bytes = torch_workspace_bytes(capability, options.deterministic_mode);
        // One a thread and stream: forward runs in the main thread, backward in autograd's.
        result.bytes.insert(result.bytes.end(), {bytes, bytes});
        result.constants.push_back(workspace("torch_cublas_workspace_bytes", bytes,
                                             "PyTorch, one for the forward and one for the backward thread"));
    }
    if (options.transformer_engine) {
        const std::uint64_t bytes = transformer_engine_workspace_bytes(capability);
        result.bytes.insert(result.bytes.end(), grouped_products ? 1 + grouped_streams : 1, bytes);
        result.constants.push_back(
            workspace("transformer_engine_workspace_bytes", bytes,
                      "Transformer Engine, one a device and one a stream of grouped products"));
    }
    return result;
}

std::vector<Constant> allocate_megatron_workspaces(const MegatronStage& stage, ProgramBuilder& builder) {
    const auto allocate = [&](DType dtype, std::uint64_t elements) {
        builder.allocate({.role = BufferRole::workspace,
                          .category = Category::temporaries,
                          .dtype = dtype,
                          .elements = elements});
    };
    const Scenario& scenario = stage.scenario();
    const MegatronContext context = megatron_context(scenario, stage.options());
    const bool experts = context.decoder.experts.has_value();
    const bool torch_products = stage.has_head(stage.chunk_count() - 1) ||
                                !stage.options().transformer_engine ||
                                context.attention == AttentionKernel::eager || experts;
    MegatronWorkspaces workspaces = megatron_workspaces(scenario, stage.options(), torch_products, experts);
    for (const std::uint64_t bytes : workspaces.bytes) allocate(DType::uint8, bytes);
    if (const std::uint64_t elements = stage.parts().memory_buffer_elements; elements > 0)
        allocate(stage.training().compute_dtype, elements);
    if (context.decoder.position_embedding == "rope")
        allocate(DType::fp32, scenario.training.sequence_length * context.decoder.head_dim);
    return std::move(workspaces.constants);
}

}  // namespace zeroplan
