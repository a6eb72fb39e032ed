#pragma once

#include <span>
#include <string_view>

/// The presets that the library carries; the definitions are generated, see cmake/EmbedFiles.cmake.
namespace zeroplan::embedded {

struct File {
    std::string_view name;  ///< file name without folder and extension, e.g. "llama-3-8b"
    std::string_view text;  ///< whole contents
};

std::span<const File> models();      ///< models/*.json
std::span<const File> topologies();  ///< topologies/*.json
std::span<const File> gpus();        ///< topologies/gpus/*.json

}  // namespace zeroplan::embedded
