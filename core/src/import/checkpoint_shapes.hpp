#pragma once
#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json_fwd.hpp>

#include "import/safetensors.hpp"

namespace zeroplan {

/// Lookups in the tensors of one checkpoint, all behind one prefix.
class CheckpointShapes {
public:
    CheckpointShapes(const CheckpointHeader& checkpoint, std::string prefix)
        : checkpoint_(checkpoint), prefix_(std::move(prefix)), file_(checkpoint.path.string()) {}

    bool has(const std::string& name) const { return checkpoint_.tensors.contains(prefix_ + name); }

    /// Size `dimension` of a tensor of `dimensions`; throws if it is not there or empty.
    std::uint64_t size(const std::string& name, std::size_t dimension, std::size_t dimensions = 2) const {
        const auto found = checkpoint_.tensors.find(prefix_ + name);
        if (found == checkpoint_.tensors.end() || found->second.shape.size() != dimensions ||
            found->second.shape[dimension] == 0)
            throw Error(
                ErrorCode::not_supported,
                fmt::format("the checkpoint has no {}-dimensional tensor {}{}", dimensions, prefix_, name),
                "give the model's config.json; it names the family", {checkpoint_.path.string(), ""});
        return found->second.shape[dimension];
    }

    /// One more than the largest N of "`list`.N.…".
    std::uint64_t layers(const std::string& list) const {
        std::uint64_t count = 0;
        const std::string start = prefix_ + list + ".";
        for (const auto& [name, tensor] : checkpoint_.tensors) {
            if (!name.starts_with(start)) continue;
            std::uint64_t layer = 0;
            const char* digits = name.data() + start.size();
            const auto [end, error] = std::from_chars(digits, name.data() + name.size(), layer);
            if (error == std::errc{} && end != digits && *end == '.') count = std::max(count, layer + 1);
        }
        return count;
    }

    /// Of a tensor of the given whole name, whatever the prefix.
    bool has_whole(const std::string& name) const { return checkpoint_.tensors.contains(name); }
    bool has_output_layer() const { return has_whole("lm_head.weight"); }
    std::uint64_t whole_size(const std::string& name, std::size_t dimension) const {
        return CheckpointShapes(checkpoint_, "").size(name, dimension);
    }
    const std::string& file() const { return file_; }

private:
    const CheckpointHeader& checkpoint_;
    std::string prefix_, file_;
};

/// Shapes tell the widths of q and k, not into how many heads they divide. The families' habit: 128 a head
/// from a hidden size of 2560 on, 64 below.
std::uint64_t assumed_head_dim(std::uint64_t hidden, std::uint64_t query, std::uint64_t key_value);

/// Writes heads of `head_dim` into `config`, with a note that they are assumed.
void assume_heads(nlohmann::json& config, std::uint64_t head_dim, std::uint64_t query,
                  std::uint64_t key_value);

}  // namespace zeroplan
