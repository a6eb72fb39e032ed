#pragma once
#include <cstdint>
#include <vector>

#include "engines/program_builder.hpp"
#include "zeroplan/training_config.hpp"

namespace zeroplan {

/// Puts a copy on the stream of its direction.
OperationId issue_copy(ProgramBuilder& builder, const HostCopy& copy, std::vector<OperationId> waits = {});

/// A copy that the engine issues on `stream`: it starts when that is empty and what is held for it has ended,
/// and what follows there waits.
OperationId copy_in_line(ProgramBuilder& builder, Stream stream, const HostCopy& copy);

/// Bytes of host memory that a step over `elements` reads and writes: parameters (or master weights) and
/// states both ways, gradients once.
std::uint64_t host_step_bytes(const TrainingConfig& training, std::uint64_t elements,
                              std::uint64_t parameter_bytes, std::uint64_t gradient_bytes);

/// Bytes of the optimizer's states of `elements` on the host, where its step count is a number.
std::uint64_t host_state_bytes(const TrainingConfig& training, std::uint64_t elements);

}  // namespace zeroplan
