#pragma once
#include <span>
#include <string>
#include <string_view>

#include "import/config_json.hpp"

namespace zeroplan {

/// A family that is no decoder alone: its model_type, the classes that can be counted (the first unless the
/// file names another) and the function that reads it.
struct OtherFamily {
    std::string_view model_type;
    std::span<const std::string_view> classes;
    std::span<const std::string_view> keys;  ///< that it reads
    ReadConfig (*read)(const ConfigObject&, const std::string& name);
};

/// bert, roberta, distilbert, t5, mt5, vit, dinov2, llava, gemma3, qwen2_vl, qwen2_5_vl, mamba.
std::span<const OtherFamily> other_families();
/// By model_type, else by the class that "architectures" names; nullptr for decoders and unknown ones.
const OtherFamily* find_other_family(const ConfigObject& config);

/// The class to count: what "architectures" names, else the family's first. Throws Error{not_supported} for a
/// class that is not among the family's.
std::string counted_class(const ConfigObject& config);

ReadConfig read_bert(const ConfigObject& config, const std::string& name);
ReadConfig read_roberta(const ConfigObject& config, const std::string& name);
ReadConfig read_distilbert(const ConfigObject& config, const std::string& name);
ReadConfig read_t5(const ConfigObject& config, const std::string& name);
ReadConfig read_mt5(const ConfigObject& config, const std::string& name);
ReadConfig read_vit(const ConfigObject& config, const std::string& name);
ReadConfig read_dinov2(const ConfigObject& config, const std::string& name);
ReadConfig read_llava(const ConfigObject& config, const std::string& name);
ReadConfig read_gemma3(const ConfigObject& config, const std::string& name);
ReadConfig read_qwen2_vl(const ConfigObject& config, const std::string& name);
ReadConfig read_qwen2_5_vl(const ConfigObject& config, const std::string& name);
ReadConfig read_mamba(const ConfigObject& config, const std::string& name);

/// Sizes with a default, bounded as those of decoders are.
std::uint64_t size_or(const ConfigObject& config, const KeyNames& names, std::uint64_t usual);
std::uint64_t layers_or(const ConfigObject& config, const KeyNames& names, std::uint64_t usual);
/// Layer sizes that the families share: hidden, layers, heads, intermediate, with the defaults given.
struct LayerDefaults {
    std::uint64_t vocabulary = 0, hidden = 0, intermediate = 0, layers = 0, heads = 0, positions = 0;
    std::uint64_t head_dim = 0;  ///< where it is a key of its own; 0: hidden / heads
};
DecoderConfig read_layers(const ConfigObject& config, const LayerDefaults& usual);
/// Classes of a classification: num_labels, else as many as id2label names, else 2 (transformers' default).
std::uint64_t label_count(const ConfigObject& config);

}  // namespace zeroplan
