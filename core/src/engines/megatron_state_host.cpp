#include <algorithm>

#include "engines/host_copies.hpp"
#include "engines/megatron_state.hpp"
#include "engines/torch_host.hpp"

namespace zeroplan {
namespace {

constexpr std::uint64_t fp32_bytes = 4;

/// Norms and biases have a group of their own, without weight decay, which comes last.
/// source: megatron/core/optimizer/__init__.py, _get_param_groups (None first)
bool is_decayed(const Parameter& parameter) {
    return parameter.shape.size() > 1;
}

/// Takes whole tensors until they reach the fraction of all.
/// source: megatron/core/optimizer/cpu_offloading/hybrid_optimizer.py, _get_sub_optimizer_param_groups
class UntilFraction {
public:
    UntilFraction(std::uint64_t all, double fraction) : threshold_(static_cast<double>(all) * fraction) {}
    bool take(std::uint64_t numel) {
        if (static_cast<double>(taken_) >= threshold_) return false;
        taken_ += numel;
        return true;
    }

private:
    double threshold_;
    std::uint64_t taken_ = 0;
};

}  // namespace

/// Of the rank's share, in the buffers' order; experts have an optimizer of their own.
void MegatronState::choose_offloaded() {
    if (plan_.offloaded == 0) return;
    for (const bool experts : {false, true}) {
        std::uint64_t all = 0;
        for (std::size_t b = 0; b < buffers_.size(); ++b)
            if (buffers_[b].experts == experts)
                for (const Piece& piece : pieces_[b]) all += piece.numel;
        UntilFraction until(all, plan_.offloaded);
        for (const bool decayed : {true, false})
            for (std::size_t b = 0; b < buffers_.size(); ++b) {
                if (buffers_[b].experts != experts) continue;
                // Buffers hold parameters in reverse; pieces are in registration order.
                for (auto piece = pieces_[b].rbegin(); piece != pieces_[b].rend(); ++piece) {
                    if (is_decayed(model_.parameters[piece->parameter]) != decayed) continue;
                    piece->on_host = until.take(piece->numel);
                    if (piece->on_host) buffers_[b].on_host += piece->numel;
                }
            }
    }
    // Padding is nobody's.
    for (std::size_t b = 0; b < buffers_.size(); ++b)
        if (std::all_of(pieces_[b].begin(), pieces_[b].end(), [](const Piece& p) { return p.on_host; }))
            buffers_[b].owned = buffers_[b].on_host;
}

/// The optimizer is made twice: of whole parameters, before the distributed optimizer makes one of the rank's
/// share in its place. source: megatron/core/optimizer/__init__.py
/// (_get_megatron_optimizer_based_on_param_groups), distrib_optimizer.py (DistributedOptimizer.__init__)
std::vector<std::uint32_t> MegatronState::whole_parameters(bool on_host) const {
    std::vector<std::uint32_t> chosen;
    for (const bool experts : {false, true}) {
        std::uint64_t all = 0;
        for (const ChunkBuffer& buffer : buffers_)
            if (buffer.experts == experts)
                for (const std::uint32_t p : buffer.members) all += model_.parameters[p].numel;
        UntilFraction until(all, plan_.offloaded);
        for (const bool decayed : {true, false})
            for (const ChunkBuffer& buffer : buffers_) {
                if (buffer.experts != experts) continue;
                for (const std::uint32_t p : buffer.members)
                    if (is_decayed(model_.parameters[p]) == decayed &&
                        until.take(model_.parameters[p].numel) == on_host)
                        chosen.push_back(p);
            }
    }
    return chosen;
}

/// fp32 clones that the first of the two optimizers has on the device.
std::vector<BufferId> MegatronState::clone_whole_parameters(ProgramBuilder& builder) const {
    std::vector<BufferId> clones;
    if (plan_.offloaded == 0 || !plan_.master) return clones;
    for (const std::uint32_t p : whole_parameters(false))
        clones.push_back(builder.allocate(of_parameter(BufferRole::master_weights, Category::master_weights,
                                                       DType::fp32, p, model_.parameters[p].numel)));
    return clones;
}

/// Both ways in the dtype of the host's parameters, fp32, and cast on the device a tensor at a time: copies
/// into and out of page-locked memory are non-blocking, and PyTorch casts those where the GPU is
/// (copy_kernel_cuda in aten/src/ATen/native/cuda/Copy.cu). They are issued on the stream that computes
/// (overlap_cpu_optimizer_d2h_h2d is false).
void MegatronState::copy(ProgramBuilder& builder, const ChunkBuffer& buffer, CopyPath path) const {
    const bool gradients = path == CopyPath::to_host;
    std::uint64_t largest = 0;
    for (const Piece& piece : pieces_[buffer_of_[buffer.members.front()]])
        if (piece.on_host) largest = std::max(largest, piece.numel);
    BufferId cast = no_buffer;
    if (bytes_per_element(gradients ? plan_.gradients : plan_.parameters) != fp32_bytes)
        cast = builder.allocate({.role = BufferRole::workspace,
                                 .category = Category::temporaries,
                                 .dtype = DType::fp32,
                                 .owner = buffer.unit,
                                 .elements = largest});
    copy_in_line(builder, Stream::compute,
                 {.path = path,
                  .role = gradients ? BufferRole::gradients : BufferRole::parameters,
                  .owner = buffer.unit,
                  .bytes = buffer.on_host * fp32_bytes,
                  .buffer = gradients ? buffer.gradients : buffer.parameters});
    builder.free_if_there(cast);
}

/// All gradients go, the device and the host step, all new values come back.
/// source: HybridDeviceOptimizer.step
void MegatronState::step_on_host(ProgramBuilder& builder, const TrainingConfig& training) const {
    for (const OperationId reduced : builder.last(Stream::reduce)) builder.hold(Stream::compute, reduced);
    for (const ChunkBuffer& buffer : buffers_)
        if (buffer.on_host > 0) copy(builder, buffer, CopyPath::to_host);
    for (const ChunkBuffer& buffer : buffers_)
        if (buffer.on_host < buffer.owned) step_on_device(builder, buffer);
    for (const ChunkBuffer& buffer : buffers_)
        if (buffer.on_host > 0)
            builder.on_stream(
                Stream::host,
                HostStep{.unit = buffer.unit,
                         .elements = buffer.on_host,
                         .bytes = host_step_bytes(training, buffer.on_host, fp32_bytes, fp32_bytes),
                         .fused = true},
                builder.last(Stream::to_host));
    for (const OperationId stepped : builder.last(Stream::host)) builder.hold(Stream::compute, stepped);
    for (const ChunkBuffer& buffer : buffers_)
        if (buffer.on_host > 0) copy(builder, buffer, CopyPath::to_device);
    for (const OperationId back : builder.last(Stream::to_device)) builder.hold(Stream::gather, back);
}

/// Page-locked: of both optimizers the 16-bit copies and the fp32 parameters, of the one that stays also
/// gradients, from the first step on. States are pageable.
HostPhases MegatronState::host(const TrainingConfig& training) const {
    PinnedBlocks pinned;
    const auto load = [&](std::uint64_t numel) {
        const std::uint64_t narrow = numel * bytes_per_element(plan_.parameters);
        if (plan_.master) {
            pinned.allocate(narrow);
            pinned.free(narrow);
        }
        pinned.allocate(numel * fp32_bytes);
    };
    const std::vector<std::uint32_t> whole = whole_parameters(true);
    std::vector<std::uint64_t> share;
    for (const std::vector<Piece>& pieces : pieces_)
        for (const Piece& piece : pieces)
            if (piece.on_host) share.push_back(piece.numel);
    for (const std::uint32_t p : whole) load(model_.parameters[p].numel);
    for (const std::uint64_t numel : share) load(numel);
    const HostMemory loaded{.pinned = pinned.total(), .pageable = {}};
    for (const std::uint32_t p : whole) pinned.free(model_.parameters[p].numel * fp32_bytes);
    HostMemory trained;
    for (const std::uint64_t numel : share) {
        pinned.allocate(numel * fp32_bytes);
        trained.pageable += Bytes{host_state_bytes(training, numel)};
    }
    trained.pinned = pinned.total();
    return {loaded, loaded, trained, trained, trained};
}

}  // namespace zeroplan
