#pragma once
#include <cstdint>

#include "engines/megatron_stage.hpp"
#include "engines/program_builder.hpp"

namespace zeroplan {

/// Messages between pipeline stages. source: megatron/core/pipeline_parallel/p2p_communication.py.
class MegatronMessages {
public:
    MegatronMessages(const MegatronStage& stage, ProgramBuilder& builder)
        : stage_(stage), builder_(builder) {}

    void receive_activations(Chunk chunk);
    void send_activations(Chunk chunk);
    void receive_gradients(Chunk chunk);
    void send_gradients(Chunk chunk);

private:
    bool scatters() const;
    /// `lower`: the virtual stage that the message leaves forward, or comes back to.
    void transfer(bool send, bool gradients, std::uint32_t lower, std::uint32_t block, std::uint32_t index);
    void transfer_before(Chunk chunk, bool send, bool gradients);
    void transfer_behind(Chunk chunk, bool send, bool gradients);

    const MegatronStage& stage_;
    ProgramBuilder& builder_;
};

}  // namespace zeroplan
