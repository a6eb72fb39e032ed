#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "zeroplan/category.hpp"
#include "zeroplan/collective_kind.hpp"
#include "zeroplan/dtype.hpp"
#include "zeroplan/model_spec.hpp"
#include "zeroplan/shard_layout.hpp"

namespace zeroplan {

/// FIFO queues of one rank. The host issues operations in program order; streams run them in issue order.
/// `exchange` carries what overlaps with compute inside a layer and between pipeline stages. What is
/// offloaded goes `to_host` and comes back `to_device`, each direction for itself; `host` is what the host's
/// cores do to it, `nvme` what its drives read and write.
enum class Stream : std::uint8_t { compute, gather, reduce, exchange, to_host, to_device, host, nvme };
inline constexpr std::size_t stream_count = 8;
inline constexpr std::array<Stream, stream_count> all_streams{
    Stream::compute, Stream::gather,    Stream::reduce, Stream::exchange,
    Stream::to_host, Stream::to_device, Stream::host,   Stream::nvme};
constexpr bool is_offload(Stream stream) {
    return stream >= Stream::to_host;
}
std::string_view to_string(Stream stream);

using BufferId = std::uint32_t;
using OperationId = std::uint32_t;
inline constexpr BufferId no_buffer = 0xffffffffU;

/// What a buffer holds; with `owner` and `tensor` this names it.
enum class BufferRole : std::uint8_t {
    parameters,           ///< owner = unit; whole flat buffer, or the own slice at stage 3
    gradients,            ///< owner = unit; whole, or the own slice
    master_weights,       ///< owner = unit
    momentum,             ///< owner = unit; first optimizer state
    variance,             ///< owner = unit; second optimizer state
    gathered_parameters,  ///< owner = unit
    gradient_bucket,      ///< owner = unit; where backward writes before reduce-scatter
    batch,                ///< owner = 0
    labels,               ///< owner = 0
    activation,           ///< owner = block, tensor = index in its kind
    activation_gradient,  ///< owner = block, tensor
    workspace,            ///< owner = block or 0
    consolidated          ///< owner = unit; gathered for a checkpoint
};

struct Buffer {
    BufferRole role = BufferRole::activation;
    Category category = Category::activations;
    DType dtype = DType::fp32;
    std::uint32_t owner = 0, tensor = 0;
    std::uint64_t elements = 0;
    friend bool operator==(const Buffer&, const Buffer&) = default;
};

/// Arena rule shared by planner and runner: every allocation is a multiple of 512 bytes.
inline constexpr std::uint64_t arena_alignment = 512;
/// Bytes the allocation takes: elements · dtype, rounded up to the arena's alignment.
Bytes allocated_bytes(const Buffer& buffer);

/// A whole buffer, or only the slice that the rank owns ([r·n/N, (r+1)·n/N) of n elements, N = shard group).
struct Operand {
    BufferId buffer = no_buffer;
    bool own_slice = false;
    friend bool operator==(const Operand&, const Operand&) = default;
};

struct Allocate {
    BufferId buffer = no_buffer;
    friend bool operator==(const Allocate&, const Allocate&) = default;
};

/// The host blocks until the operations it waits for have ended, then the buffer is free.
/// What no stream uses but the one that is current where it is allocated is freed in that stream's order.
struct Free {
    BufferId buffer = no_buffer;
    friend bool operator==(const Free&, const Free&) = default;
};

/// all_gather: send = own part, receive = whole; reduce_scatter: send = whole, receive = own part (sum in
/// fp32, rank order, rounded once); all_reduce: send = receive. In place where send and receive are one
/// buffer. A collective inside an operator has no buffers of its own: the operator's tensors are its.
struct Collective {
    CollectiveKind kind = CollectiveKind::all_gather;
    GroupKind group = GroupKind::shard_group;
    Operand send, receive;
    DType dtype = DType::fp32;
    std::uint64_t elements = 0;  ///< of the whole buffer, over all ranks of the group (nccl-tests' size /
                                 ///< dtype); all_to_all: a rank's
    std::uint32_t unit = 0;
    friend bool operator==(const Collective&, const Collective&) = default;
};

/// One side of a message between neighbouring pipeline stages. A receive ends when the send that was issued
/// as the same number on its channel has ended.
struct Transfer {
    bool send = true;
    std::uint32_t channel = 0;  ///< 2 · virtual stage that is left by activations, + 1 for gradients
    DType dtype = DType::bf16;
    std::uint64_t elements = 0;  ///< of one rank's message
    bool to_next = true;         ///< towards the higher stage (the last one's next is the first)
    friend bool operator==(const Transfer&, const Transfer&) = default;
};

/// to += from (sum in fp32, rounded to to's dtype); to = from in the first micro-batch of a step unless
/// `always_add` (a tied weight's second contribution).
struct Accumulate {
    Operand from, to;
    std::uint32_t unit = 0;
    bool always_add = false;
    std::uint64_t elements = 0;  ///< that move, where both are flat buffers that hold more; 0: as many as
                                 ///< the smaller of the two holds
    friend bool operator==(const Accumulate&, const Accumulate&) = default;
};

enum class ComputePhase : std::uint8_t { forward, recompute, backward };
std::string_view to_string(ComputePhase phase);

/// How a compute operation uses a buffer.
enum class ArgumentRole : std::uint8_t {
    input,
    output,
    saved,  ///< activations; index = position in the operator's inputs, outputs, saved
    grad_output,
    grad_input,  ///< index = position in the operator's outputs, inputs
    parameters,
    gradients,  ///< a unit's flat buffer; index = unit
    workspace
};
struct Argument {
    ArgumentRole role = ArgumentRole::input;
    std::uint32_t index = 0;
    BufferId buffer = no_buffer;
    friend bool operator==(const Argument&, const Argument&) = default;
};

/// One operator of one block, forward or backward. Backward overwrites the gradients of its parameters, or
/// adds to them if `accumulate_after_first` and it is not the first micro-batch, or if `accumulate` (a tied
/// weight's second use).
struct Compute {
    std::uint32_t block = 0, op = 0;  ///< op indexes the block kind's operators
    ComputePhase phase = ComputePhase::forward;
    bool accumulate_after_first = false, accumulate = false;
    std::vector<Argument> arguments;
    friend bool operator==(const Compute&, const Compute&) = default;
};

/// Matrices of one shape whose update is made orthogonal (Muon), by matrix products in bf16.
struct Orthogonalised {
    std::uint64_t rows = 0, columns = 0, count = 0;
    friend bool operator==(const Orthogonalised&, const Orthogonalised&) = default;
};

/// Updates the owned elements of one unit; the mean over ranks and micro-batches is applied here, in fp32.
struct OptimizerStep {
    std::uint32_t unit = 0;
    Operand parameters, gradients, master, momentum, variance;  ///< absent ones have no_buffer
    std::uint64_t elements = 0;                                 ///< owned
    std::vector<Orthogonalised> orthogonalised{};
    friend bool operator==(const OptimizerStep&, const OptimizerStep&) = default;
};

/// The host fills the batch (and label) buffers of the next micro-batch.
struct LoadBatch {
    BufferId batch = no_buffer, labels = no_buffer;
    friend bool operator==(const LoadBatch&, const LoadBatch&) = default;
};

enum class CopyPath : std::uint8_t { to_host, to_device, to_nvme, from_nvme };
std::string_view to_string(CopyPath path);

/// A rank's tensors on their way between the memories of device and host, or between the host's and a drive.
struct HostCopy {
    CopyPath path = CopyPath::to_host;
    BufferRole role = BufferRole::gradients;  ///< what they hold
    std::uint32_t owner = 0;                  ///< unit; of activations the block
    std::uint64_t bytes = 0;
    BufferId buffer = no_buffer;  ///< the device's side, where it is one buffer
    bool pinned = true;           ///< the host's side is page-locked
    friend bool operator==(const HostCopy&, const HostCopy&) = default;
};

/// The host's cores update a unit's owned elements in its memory.
struct HostStep {
    std::uint32_t unit = 0;
    std::uint64_t elements = 0;
    std::uint64_t bytes = 0;  ///< read and written
    bool fused = true;        ///< one pass over all tensors, vectorised and threaded; else one a kernel
    friend bool operator==(const HostStep&, const HostStep&) = default;
};

/// The host blocks until the operations it waits for have ended.
struct Wait {
    friend bool operator==(const Wait&, const Wait&) = default;
};

using OperationBody = std::variant<Allocate, Free, Collective, Accumulate, Compute, OptimizerStep, LoadBatch,
                                   Wait, Transfer, HostCopy, HostStep>;

/// Starts when the host has issued it, its stream is free and every operation in `waits` has ended.
/// Allocate, Free, LoadBatch and Wait take no stream.
struct Operation {
    OperationBody body;
    Stream stream = Stream::compute;
    std::vector<OperationId> waits;  ///< positions in the same section, all smaller than its own
    friend bool operator==(const Operation&, const Operation&) = default;
};

/// Operations that run `repeat` times in a row. A section that repeats leaves live exactly what was live
/// before it (a pipeline's other sections may leave micro-batches in flight to the next one); no operation
/// waits across sections, so a section may be timed and accounted once and repeated.
struct Section {
    std::string name;  ///< "micro_batch", "last_micro_batch_and_step", "load", "init", "save"
    std::uint64_t repeat = 1;
    std::vector<Operation> operations;
    friend bool operator==(const Section&, const Section&) = default;
};

/// What every rank of one rank group does. `load` and `init` allocate what stays resident; `step` is a steady
/// step; `save` gathers the full parameters unit by unit. `first_step` is the first step's allocations where
/// they differ from a steady step's, because what an optimizer creates at its first step stays resident.
struct StepProgram {
    std::vector<Buffer> buffers;
    Section load, init, save;
    std::vector<Section> step, first_step{};
    friend bool operator==(const StepProgram&, const StepProgram&) = default;
};

/// "backward model.layers.3 mlp.up_proj", "all_gather model.layers.4": for people.
std::string describe(const Operation& operation, const StepProgram& program, const ModelSpec& model,
                     const ShardLayout& layout);
/// "model.layers.3 mlp.gate (activation, bf16)".
std::string describe(const Buffer& buffer, const ModelSpec& model, const ShardLayout& layout);

}  // namespace zeroplan
