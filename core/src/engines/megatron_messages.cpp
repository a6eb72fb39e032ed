#include "engines/megatron_messages.hpp"

#include "engines/stage_messages.hpp"

namespace zeroplan {

/// Megatron-LM 2021 sent each tensor-parallel rank's part and gathered it there
/// (scatter_gather_tensors_in_pipeline).
bool MegatronMessages::scatters() const {
    return !stage_.is_core() && stage_.training().tensor_parallel > 1;
}

/// Interleaved schedules overlap their messages unless overlap_p2p_comm is false; 1F1B waits for each.
/// source: megatron/core/pipeline_parallel/schedules.py.
void MegatronMessages::transfer(bool send, bool gradients, std::uint32_t lower, std::uint32_t block,
                                std::uint32_t index) {
    const TensorSpec& spec = stage_.tensor(block, index);
    const std::uint64_t parts = scatters() ? stage_.training().tensor_parallel : 1;
    const StageMessage message{.lower = lower,
                               .gradients = gradients,
                               .dtype = resolve(spec.dtype, storage_dtype(stage_.training().compute_dtype)),
                               .elements = stage_.numel(spec) / parts};
    const bool overlaps = stage_.is_interleaved() && stage_.options().overlap_messages.value_or(true);
    if (send) return send_to_stage(builder_, message, overlaps ? Stream::exchange : Stream::compute);
    receive_from_stage(builder_, message);
    if (scatters()) gather_parts(builder_, message.dtype, message.elements * parts);
}

void MegatronMessages::transfer_before(Chunk chunk, bool send, bool gradients) {
    if (!stage_.has_embedding(chunk))
        transfer(send, gradients, stage_.virtual_stage(chunk) - 1, stage_.blocks(chunk).first, 0);
}

void MegatronMessages::transfer_behind(Chunk chunk, bool send, bool gradients) {
    const std::uint32_t last = stage_.blocks(chunk).last;
    if (!stage_.has_head(chunk))
        transfer(send, gradients, stage_.virtual_stage(chunk), last, stage_.output_of(last));
}

void MegatronMessages::receive_activations(Chunk chunk) {
    transfer_before(chunk, false, false);
}
void MegatronMessages::send_gradients(Chunk chunk) {
    transfer_before(chunk, true, true);
}
void MegatronMessages::send_activations(Chunk chunk) {
    transfer_behind(chunk, true, false);
}
void MegatronMessages::receive_gradients(Chunk chunk) {
    transfer_behind(chunk, false, true);
}

}  // namespace zeroplan
