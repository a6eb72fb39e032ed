#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "json/object_reader.hpp"

namespace zeroplan {

/// One tensor of a checkpoint.
struct CheckpointTensor {
    std::string dtype;  ///< as written: "BF16"
    std::vector<std::uint64_t> shape;
    std::string file;  ///< the file whose header lists it
};

/// The tensors of a checkpoint, by name, without their data.
struct CheckpointHeader {
    std::filesystem::path path;  ///< of the file or index
    std::map<std::string, CheckpointTensor> tensors;
    std::vector<std::string> notes;
    /// "__metadata__"'s "zeroplan_stack": the plain stack that zeroplan run has trained, as JSON text; else
    /// "".
    std::string stack{};
};

/// Header of a .safetensors file: 8 bytes of length, little endian, then JSON. The data is never read, but
/// the offsets are checked against the file's size: throws Error{invalid_input} for a truncated file, a
/// header longer than the file or than the format's 100 MB, offsets that overlap or lie outside, a size that
/// is not dtype × shape. A file that ends with its header is taken for an extract, with a note.
CheckpointHeader read_safetensors(const std::filesystem::path& path);

/// A model.safetensors.index.json: the headers of the shards it names, which stand beside it. Throws
/// Error{not_found} naming a shard that is missing, Error{invalid_input} for a tensor that its shard doesn't
/// have.
CheckpointHeader read_index(const ObjectReader& index, const std::filesystem::path& path);

}  // namespace zeroplan
