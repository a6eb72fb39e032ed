#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "zeroplan/memory_timeline.hpp"
#include "zeroplan/scenario.hpp"
#include "zeroplan/shard_layout.hpp"
#include "zeroplan/step_program.hpp"

namespace zeroplan {

enum class Verdict : std::uint8_t { fits, marginal, does_not_fit };
enum class Phase : std::uint8_t { load, init, first_step, steady_step, save };
std::string_view to_string(Verdict);
std::string_view to_string(Phase);

/// Ranks first … last, both included.
struct RankRange {
    std::uint64_t first = 0, last = 0;
    friend bool operator==(const RankRange&, const RankRange&) = default;
};
/// "0-6,8"
std::string to_string(const std::vector<RankRange>& ranks);

/// Host memory that one rank's process takes for the training.
struct HostMemory {
    Bytes pinned;  ///< page-locked, blocks already rounded up as PyTorch's host allocator does
    Bytes pageable;
    Bytes total() const { return pinned + pageable; }
    friend bool operator==(const HostMemory&, const HostMemory&) = default;
};

/// Host memory in each phase, in the order of Phase.
using HostPhases = std::array<HostMemory, 5>;

struct PhaseMemory {
    Phase phase = Phase::load;
    Bytes peak_allocated, peak_reserved;
    Bytes host_per_node;
    std::uint32_t section = 0;  ///< where `peak_allocated` is reached: a section of the phase …
    OperationId operation = 0;  ///< … and the operation of it that was being issued
    friend bool operator==(const PhaseMemory&, const PhaseMemory&) = default;
};

/// Ranks whose program and memory are the same to the byte.
struct RankGroup {
    std::vector<RankRange> ranks;
    std::uint32_t program = 0;  ///< index into Plan::programs
    MemoryPeak steady;          ///< peak of a steady step; `section` indexes StepProgram::step
    Bytes peak_active, peak_reserved, peak_device;  ///< of a steady step
    Bytes resident, runtime;
    Bytes runtime_low, runtime_high;  ///< interval of `runtime`
    /// Reserved up to the steady step where the device is large enough. Near its end PyTorch's allocator
    /// gives free segments back, and `peak_reserved` is less.
    Bytes wanted_reserved;
    std::vector<PhaseMemory> phases;
    friend bool operator==(const RankGroup&, const RankGroup&) = default;
};

struct MemorySummary {
    std::uint32_t worst_group = 0;  ///< the rank group with the highest overall device peak
    Bytes overall_peak_device;      ///< maximum over load … steady_step, context and NCCL included
    Bytes capacity, low, high;      ///< interval of overall_peak_device
    Verdict verdict = Verdict::fits;
    std::uint64_t peak_rank = 0;
    Phase peak_phase = Phase::steady_step;  ///< the phase whose peak is judged
    std::string peak_operation;             ///< of that phase, for people
    Bytes host_per_node, host_capacity;
    friend bool operator==(const MemorySummary&, const MemorySummary&) = default;
};

struct CommunicationVolume {
    std::uint64_t operations = 0;
    Bytes bytes_per_rank;  ///< sent by one rank in a step, ring algorithms
    Bytes buffer_bytes;    ///< sizes of the collectives' buffers
    friend bool operator==(const CommunicationVolume&, const CommunicationVolume&) = default;
};

struct Warning {
    std::string code, message;
    friend bool operator==(const Warning&, const Warning&) = default;
};

/// A named, sourced number that a result rests on.
struct Constant {
    std::string name;  ///< "cuda_context_bytes"
    double value = 0;
    std::string unit;    ///< "B", "B/s", "s", "1"
    std::string source;  ///< where it comes from
    std::string kind;    ///< "exact rule", "calibrated constant" or "assumption"
    friend bool operator==(const Constant&, const Constant&) = default;
};

/// A scenario that was planned again with one change, because it doesn't fit as it is.
struct Remedy {
    std::string flags;  ///< the change as the command line takes it: "--recompute full"
    std::string price;  ///< what it costs, in words
    Bytes overall_peak_device, capacity;
    Verdict verdict = Verdict::fits;
    /// Time of a step over that without the change; none where the step's time is not modelled.
    std::optional<double> step_time_ratio;
    bool needs_hardware = false;  ///< more or other GPUs
    friend bool operator==(const Remedy&, const Remedy&) = default;
};

/// The part of the model that the ranks of one program hold, where tensor, pipeline, context or expert
/// parallelism leaves them less than all of it.
struct RankModel {
    ModelSpec model;
    ShardLayout layout;
    std::uint64_t sequence_length = 1;  ///< tokens of one sequence that the rank works on
    friend bool operator==(const RankModel&, const RankModel&) = default;
};

/// Who hands out device memory: the native engine's arena, or PyTorch's caching allocator.
enum class AllocatorKind : std::uint8_t { arena, caching };

/// Who owns what, what every rank does, and what it costs in memory. Time is in step_timeline.hpp.
struct Plan {
    Scenario scenario;
    std::string rule_set;  ///< "native 1"
    ShardLayout layout;
    std::vector<StepProgram> programs;
    std::vector<RankModel> rank_models;  ///< by program; empty: every rank holds scenario.model
    std::vector<RankGroup> rank_groups;
    AllocatorKind allocator = AllocatorKind::arena;  ///< of device memory, by the engine
    MemorySummary memory;
    std::map<std::string, CommunicationVolume> communication;  ///< by collective
    std::vector<Warning> warnings;
    std::vector<Constant> constants;
    std::vector<Remedy> remedies;  ///< where it doesn't fit and find_remedies() was asked
    friend bool operator==(const Plan&, const Plan&) = default;
};

/// What the blocks, tensors and owners of a program's buffers refer to.
const ModelSpec& model_of(const Plan& plan, std::uint32_t program);
const ShardLayout& layout_of(const Plan& plan, std::uint32_t program);
/// Tokens of one sequence that a program's ranks work on.
std::uint64_t sequence_length_of(const Plan& plan, std::uint32_t program);

/// The collectives and messages of all kinds together. Throws Error{overflow} beyond 2^64 bytes.
CommunicationVolume total_communication(const Plan& plan);

/// The plan of a scenario. Throws Error{not_supported} for what this version's engines don't model, naming
/// it.
Plan make_plan(const Scenario& scenario);

/// Layout and programs alone, without accounting: what the engines in src/engines provide.
struct EngineOutput {
    std::string rule_set;
    ShardLayout layout;
    std::vector<StepProgram> programs;
    std::vector<RankModel> rank_models;                 ///< by program, or empty
    std::vector<std::vector<RankRange>> program_ranks;  ///< ranks of each program
    std::vector<HostPhases> host;                       ///< of one rank, by program; empty: nothing
    AllocatorKind allocator = AllocatorKind::arena;
    std::uint64_t communicators = 1;  ///< NCCL communicators a rank keeps
    std::vector<Warning> warnings;
    std::vector<Constant> constants;
    friend bool operator==(const EngineOutput&, const EngineOutput&) = default;
};

}  // namespace zeroplan
