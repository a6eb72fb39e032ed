#pragma once
#include <deque>

#include "engines/deepspeed_coordinator.hpp"
#include "engines/parameter_storage.hpp"

namespace zeroplan {

/// Parameters that the optimizer steps together: taken in order until their shards reach sub_group_size.
struct SubGroup {
    std::vector<std::uint32_t> parameters;
    std::uint64_t numel = 0;  ///< of the shards
    friend bool operator==(const SubGroup&, const SubGroup&) = default;
};
/// Master weights' dtype: the parameters' with fp16_ or bf16_master_weights_and_grads, or without a master.
DType stage3_master_dtype(const DeepSpeedRank& rank);
/// How many of `count` sub-groups are left to the device where the optimizer is offloaded: those below
/// (1 - ratio) · count, unless they are swapped to drives. source: stage3.py, _create_fp32_partitions
std::size_t sub_groups_on_device(const TrainingConfig& training, std::size_t count);
std::vector<SubGroup> sub_groups(const ModelSpec& model, std::uint64_t ranks, std::uint64_t sub_group_size);

/// Stage 3 (DeepSpeedZeroOptimizer_Stage3, MiCS_Optimizer): shards of every parameter in one buffer,
/// sub-groups of master weights, gradients that pass through an IPG bucket into a flat buffer of shards.
/// source: deepspeed/runtime/zero/stage3.py, partition_parameters.py
class DeepSpeedStage3 {
public:
    DeepSpeedStage3(const DeepSpeedRank& rank, ProgramBuilder& builder, std::vector<ModuleVisit> trace);

    void load();
    void init();
    BufferId values(std::uint32_t parameter) {
        coordinator_.enter();
        return coordinator_.values(parameter);
    }
    void begin_micro_batch() { coordinator_.begin_micro_batch(); }
    void enter() { coordinator_.enter(); }
    void leave() { coordinator_.leave(); }
    std::vector<OperationId> take_waits() { return coordinator_.take_waits(); }
    void begin_backward(bool last) { last_ = last; }
    void gradient_ready(std::uint32_t parameter, BufferId gradient);
    void end_backward(bool last);
    OperationId step();
    /// stage3_gather_16bit_weights_on_model_save: every module's own parameters whole, one module at a time.
    void save();
    const std::vector<BufferId>& states_of_first_step() const { return lazy_states_; }

private:
    std::uint64_t shard(std::uint32_t p) const {
        return stage3_shard_numel(rank_.model.parameters[p].numel, rank_.ranks);
    }
    bool is_frozen(std::uint32_t p) const { return !rank_.model.parameters[p].trainable; }
    bool parameters_on_host() const { return rank_.training.offload_parameters != OffloadTarget::none; }
    Buffer flat(BufferRole role, Category category, DType dtype, std::uint64_t elements) const {
        return flat_buffer(rank_, role, category, dtype, elements);
    }
    StoredAs loaded_as(std::uint32_t p) const;
    BufferId make_whole(std::uint32_t p);
    void load_shards();
    void load_persistent();
    void initialise_sub_group(std::size_t index);
    void allocate_gradients();
    void reduce_bucket();
    std::uint64_t padded_in_bucket() const;
    void free_joined(std::size_t keep);
    void step_sub_group(std::size_t index);
    void step_resident(std::size_t index);
    /// offload_optimizer.ratio leaves the first sub-groups to the device. source: _create_fp32_partitions
    bool steps_on_host(std::size_t index) const;
    std::uint64_t host_part_of_bucket() const;
    void send_to_host(Stream stream, std::uint64_t elements);
    void orthogonalise_bucket(Stream stream);
    void allocate_error_feedback();
    void step_on_host();
    /// A sub-group's master weights, states and gradients come from the drives, or go there.
    OperationId swap(const SubGroup& group, bool in, std::vector<OperationId> waits);
    OperationId step_sub_group_on_host(const SubGroup& group, std::vector<OperationId> waits);
    void give_new_values(const SubGroup& group, OperationId stepped);

    const DeepSpeedRank& rank_;
    ProgramBuilder& builder_;
    DeepSpeedCoordinator coordinator_;
    std::vector<SubGroup> groups_;
    std::vector<BufferId> shards_, persistent_;  ///< by parameter
    std::vector<BufferId> loaded_;               ///< trained shards before they move into one buffer
    std::vector<BufferId> masters_;              ///< by sub-group; no_buffer on the host
    std::vector<BufferId> wide_gradients_;       ///< by sub-group: resident beside others on the host
    std::vector<std::vector<BufferId>> states_;  ///< by sub-group
    std::vector<BufferId> lazy_states_;
    BufferId gradients_ = no_buffer;
    std::vector<BufferId> buckets_;
    struct InBucket {
        std::uint32_t parameter = 0;
        BufferId own = no_buffer;
    };
    std::vector<InBucket> in_bucket_;
    bool last_ = false;  ///< micro-batch of the step
    std::uint64_t elements_in_bucket_ = 0, trained_numel_ = 0;
    struct Joined {
        BufferId buffer;
        std::vector<OperationId> after;
    };
    std::deque<Joined> joined_;
};

}  // namespace zeroplan
