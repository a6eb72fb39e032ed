#pragma once
#include <cstdint>

#include "engines/program_builder.hpp"

namespace zeroplan {

/// A message between neighbouring pipeline stages.
struct StageMessage {
    std::uint32_t lower = 0;  ///< virtual stage that it leaves forward, or comes back to
    bool gradients = false;
    DType dtype = DType::bf16;
    std::uint64_t elements = 0;  ///< of the message of one rank
};

/// Sends what the compute stream has made so far, on `stream`.
void send_to_stage(ProgramBuilder& builder, const StageMessage& message, Stream stream = Stream::compute);
/// The compute stream goes on once the message is there.
void receive_from_stage(ProgramBuilder& builder, const StageMessage& message);
/// Puts a tensor of `elements` together from the parts that the tensor-parallel ranks hold.
void gather_parts(ProgramBuilder& builder, DType dtype, std::uint64_t elements);

}  // namespace zeroplan
