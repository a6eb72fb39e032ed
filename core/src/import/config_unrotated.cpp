#include "import/config_unrotated.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace zeroplan {

void read_unrotated_layers(const ConfigObject& config, DecoderConfig& decoder) {
    const auto marks = config.holder("no_rope_layers").integers("no_rope_layers");
    const std::uint64_t layers = decoder.num_hidden_layers,
                        interval = config.size({"no_rope_layer_interval"}, 10'000).value_or(4);
    const bool listed = marks && !marks->empty();
    if (listed && marks->size() < layers)
        config.fail(
            {"no_rope_layers"},
            fmt::format("no_rope_layers has {} entries, but there are {} layers", marks->size(), layers),
            "give one entry a layer: 1 with rotary embedding, 0 without");
    for (std::uint64_t i = 0; i < layers; ++i)
        if (listed ? (*marks)[i] == 0 : (i + 1) % interval == 0) decoder.layers_without_rope.push_back(i);
}

}  // namespace zeroplan
