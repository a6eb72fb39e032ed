#include "engines/deepspeed_stage3.hpp"
#include "engines/muon.hpp"

namespace zeroplan {

/// A bucket's momentum is gathered; every rank orthogonalises each so many-th of its matrices, and then all
/// gather the updates and the momentum. source: stage3.py, _apply_distributed_muon_update
void DeepSpeedStage3::orthogonalise_bucket(Stream stream) {
    if (rank_.training.optimizer != Optimizer::muon) return;
    std::vector<std::uint32_t> trained;
    std::uint64_t elements = 0;
    for (const InBucket& entry : in_bucket_) {
        if (!trained_by_muon(rank_.model.parameters[entry.parameter])) continue;
        trained.push_back(entry.parameter);
        elements += shard(entry.parameter) * rank_.ranks;
    }
    if (trained.empty()) return;
    std::vector<Orthogonalised> own = muon_matrices(rank_.model, trained);
    for (Orthogonalised& matrices : own) matrices.count = (matrices.count + rank_.ranks - 1) / rank_.ranks;
    const DType dtype = rank_.training.reduce_dtype;
    const BufferId whole = builder_.allocate(
        flat(BufferRole::workspace, Category::communication_buffers, dtype, elements), stream);
    const BufferId workspace = builder_.allocate(
        flat(BufferRole::workspace, Category::temporaries, DType::bf16, orthogonalising_workspace(own)),
        stream);
    const auto gather = [&] {
        builder_.on_stream(stream,
                           Collective{.kind = CollectiveKind::all_gather,
                                      .group = GroupKind::shard_group,
                                      .send = {whole, true},
                                      .receive = {whole, false},
                                      .dtype = dtype,
                                      .elements = elements,
                                      .unit = flat_unit(rank_.model)},
                           builder_.last(Stream::compute));
    };
    gather();
    builder_.on_stream(stream, OptimizerStep{.unit = flat_unit(rank_.model), .orthogonalised = own});
    gather();
    gather();
    for (const BufferId buffer : {whole, workspace}) joined_.push_back({buffer, builder_.last(stream)});
}

}  // namespace zeroplan
