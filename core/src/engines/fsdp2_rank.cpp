#include "engines/fsdp2_rank.hpp"

#include <string>

namespace zeroplan {

Fsdp2Rank::Fsdp2Rank(const Scenario& scenario, const TorchUnits& units, std::uint64_t rank, bool pipelined)
    : model_(scenario.model),
      training_(scenario.training),
      cluster_(scenario.cluster),
      units_(units),
      ranks_(scenario.training.shard_group),
      rank_(rank),
      replicas_(scenario.training.data_parallel * scenario.training.context_parallel / ranks_),
      compute_(storage_dtype(scenario.training.compute_dtype)),
      pipelined_(pipelined),
      gathers_fp8_(training_.fp8_json.find("\"all_gather\":true") != std::string::npos),
      position_(model_.parameters.size(), 0),
      padded_(model_.parameters.size(), 0),
      unit_padded_(units.units.size(), 0),
      unit_trained_(units.units.size(), 0) {
    for (UnitIndex u = 0; u < unit_count(); ++u)
        for (std::uint32_t i = 0; i < unit(u).parameters.size(); ++i) {
            const std::uint32_t p = unit(u).parameters[i];
            position_[p] = i;
            padded_[p] = shard(p).padded;
            unit_padded_[u] += padded_[p];
            if (model_.parameters[p].trainable) unit_trained_[u] += padded_[p];
        }
}

RowShard Fsdp2Rank::shard(std::uint32_t parameter) const {
    return row_shard(model_.parameters[parameter], ranks_, rank_);
}

StoredAs Fsdp2Rank::stored(std::uint32_t parameter) const {
    return stored_as(model_.parameters[parameter], training_.parameter_dtype);
}

StoredAs Fsdp2Rank::gathered(std::uint32_t parameter) const {
    const Parameter& p = model_.parameters[parameter];
    if (p.storage == ParameterStorage::nf4) return stored_as(p, compute_);
    return {gathers_fp8_ && p.shape.size() == 2 && !unit(unit_of(parameter)).is_root ? DType::fp8 : compute_};
}

Buffer Fsdp2Rank::buffer(BufferRole role, Category category, DType dtype, UnitIndex u, std::uint64_t elements,
                         std::size_t position) const {
    return {.role = role,
            .category = category,
            .dtype = dtype,
            .owner = u,
            .tensor = static_cast<std::uint32_t>(position),
            .elements = elements};
}

}  // namespace zeroplan
