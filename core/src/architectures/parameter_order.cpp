#include "architectures/parameter_order.hpp"

#include <algorithm>

namespace zeroplan {

void move_parameter(ModelSpec& model, std::size_t from, std::size_t to) {
    const auto at = [&](std::size_t index) {
        return model.parameters.begin() + static_cast<std::ptrdiff_t>(index);
    };
    std::rotate(at(to), at(from), at(from + 1));
    const auto renumber = [&](std::uint32_t& index) {
        if (index == from)
            index = static_cast<std::uint32_t>(to);
        else if (index >= to && index < from)
            ++index;
    };
    for (Parameter& parameter : model.parameters)
        if (parameter.shared_with) renumber(*parameter.shared_with);
    for (Block& block : model.blocks)
        for (std::uint32_t& index : block.parameters) renumber(index);
}

}  // namespace zeroplan
