#include <nlohmann/json.hpp>

#include "checkpoint.hpp"
#include "zeroplan/units.hpp"

namespace zeroplan::runner {

std::string safetensors_header(const ModelSpec& model) {
    nlohmann::ordered_json header{{"__metadata__", {{"format", "pt"}}}};
    std::uint64_t offset = 0;
    for (const Parameter& parameter : model.parameters) {
        if (parameter.shared_with) continue;
        const std::uint64_t end =
            checked_sum(offset, checked_product(parameter.numel, sizeof(float), "checkpoint"), "checkpoint");
        header[parameter.name] = {
            {"dtype", "F32"}, {"shape", parameter.shape}, {"data_offsets", {offset, end}}};
        offset = end;
    }
    std::string text = header.dump();
    text.resize(round_up(text.size(), 8), ' ');  // the data begins aligned
    std::string result;
    for (int byte = 0; byte < 8; ++byte)  // its length, little-endian
        result += static_cast<char>(text.size() >> (8 * byte) & 0xff);
    return result + text;
}

}  // namespace zeroplan::runner
