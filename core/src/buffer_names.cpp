#include "buffer_names.hpp"

#include <fmt/format.h>

namespace zeroplan {

std::string tensor_name(const Buffer& buffer, const ModelSpec& model, const ShardLayout& layout) {
    switch (buffer.role) {
        case BufferRole::activation:
        case BufferRole::activation_gradient: {
            // llm.c keeps those of all layers in one buffer.
            if (buffer.owner >= model.blocks.size()) return "all layers";
            const Block& block = model.blocks[buffer.owner];
            return fmt::format("{} {}", block.name,
                               model.block_kinds[block.kind].tensors[buffer.tensor].name);
        }
        case BufferRole::batch:
        case BufferRole::labels:
            return "micro-batch";
        case BufferRole::workspace:
            return "kernels";
        default:
            // Engines without flat buffers name the parameter: 1 + its place in the unit.
            return buffer.tensor == 0
                       ? layout.units[buffer.owner].name
                       : model.parameters[layout.units[buffer.owner].parameters[buffer.tensor - 1].parameter]
                             .name;
    }
}

std::string_view to_string(BufferRole role) {
    switch (role) {
        case BufferRole::parameters:
            return "parameters";
        case BufferRole::gradients:
            return "gradients";
        case BufferRole::master_weights:
            return "master weights";
        case BufferRole::momentum:
            return "momentum";
        case BufferRole::variance:
            return "variance";
        case BufferRole::gathered_parameters:
            return "gathered parameters";
        case BufferRole::gradient_bucket:
            return "gradient bucket";
        case BufferRole::batch:
            return "input";
        case BufferRole::labels:
            return "labels";
        case BufferRole::activation:
            return "activation";
        case BufferRole::activation_gradient:
            return "gradient of activation";
        case BufferRole::workspace:
            return "workspace";
        case BufferRole::consolidated:
            return "consolidated parameters";
    }
    return "?";
}

}  // namespace zeroplan
