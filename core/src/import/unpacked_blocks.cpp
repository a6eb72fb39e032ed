#include "import/unpacked_blocks.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "zeroplan/units.hpp"

namespace zeroplan {
namespace {

constexpr std::string_view blocks = "_blocks", scales = "_scales";
constexpr std::uint64_t bytes_a_block = 16, elements_a_block = 32;

bool fits(const std::vector<std::uint64_t>& packed, const std::vector<std::uint64_t>& scale) {
    return packed.size() == 4 && packed[3] == bytes_a_block && scale.size() == 3 &&
           std::equal(scale.begin(), scale.end(), packed.begin());
}

}  // namespace

CheckpointHeader with_unpacked_blocks(CheckpointHeader checkpoint) {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : checkpoint.tensors)
        if (name.ends_with(blocks)) names.push_back(name.substr(0, name.size() - blocks.size()));
    for (const std::string& name : names) {
        const auto packed = checkpoint.tensors.find(name + std::string(blocks));
        const auto scale = checkpoint.tensors.find(name + std::string(scales));
        if (scale == checkpoint.tensors.end() || !fits(packed->second.shape, scale->second.shape)) continue;
        CheckpointTensor unpacked = packed->second;
        const std::vector<std::uint64_t>& shape = packed->second.shape;
        unpacked.shape = {shape[0], checked_product(shape[2], elements_a_block, "elements of a block"),
                          shape[1]};
        checkpoint.tensors.erase(packed);
        checkpoint.tensors.erase(scale);
        checkpoint.tensors[name] = std::move(unpacked);
    }
    return checkpoint;
}

}  // namespace zeroplan
