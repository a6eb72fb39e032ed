#pragma once
#include <cstdint>
#include <vector>

#include "engines/program_builder.hpp"

namespace zeroplan {

using InstanceId = std::uint32_t;
constexpr InstanceId no_instance = 0xffffffffU;

/// The tensors that are live while a walk goes forward and backward. Several names may share one (in-place
/// operators, shared gradients); each is freed with its last user.
class TensorInstances {
public:
    explicit TensorInstances(ProgramBuilder& builder) : builder_(builder) {}

    void clear() { instances_.clear(); }
    InstanceId make(const Buffer& buffer, std::uint32_t users) {
        return add({.buffer = builder_.allocate(buffer), .users = users});
    }
    /// One user more than the walk has, so that it never frees it.
    InstanceId borrow(BufferId buffer) { return add({.buffer = buffer, .users = 2, .shared = true}); }

    void use(InstanceId id, std::uint32_t times = 1) { instances_[id].users += times; }
    void release(InstanceId id) {
        if (--instances_[id].users == 0) builder_.free(instances_[id].buffer);
    }
    BufferId buffer(InstanceId id) const { return instances_[id].buffer; }
    /// Somebody else reads it: sums must not go into it.
    bool is_shared(InstanceId id) const { return instances_[id].shared; }
    void set_shared(InstanceId id, bool shared) { instances_[id].shared = shared; }

    /// Live tensors go to the host, and come back. Returns whether there was anything to move.
    bool send_to_host(InstanceId id) {
        Instance& instance = instances_[id];
        if (instance.users == 0 || instance.on_host) return false;
        builder_.free(instance.buffer);
        instance.on_host = true;
        return true;
    }
    bool fetch_from_host(InstanceId id) {
        Instance& instance = instances_[id];
        if (!instance.on_host) return false;
        instance.buffer = builder_.allocate(builder_.buffer(instance.buffer));
        instance.on_host = false;
        return true;
    }

private:
    struct Instance {
        BufferId buffer = no_buffer;
        std::uint32_t users = 0;
        bool shared = false, on_host = false;
    };

    InstanceId add(const Instance& instance) {
        instances_.push_back(instance);
        return static_cast<InstanceId>(instances_.size() - 1);
    }

    ProgramBuilder& builder_;
    std::vector<Instance> instances_;
};

}  // namespace zeroplan
