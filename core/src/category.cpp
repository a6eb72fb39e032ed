#include "zeroplan/category.hpp"

namespace zeroplan {

std::string_view to_string(Category category) {
    constexpr std::array<std::string_view, category_count> words{
        "parameters",          "gradients",
        "master_weights",      "optimizer_states",
        "gathered_parameters", "communication_buffers",
        "activations",         "logits",
        "temporaries"};
    return words[static_cast<std::size_t>(category)];
}

}  // namespace zeroplan
