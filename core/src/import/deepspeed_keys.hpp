#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace zeroplan {

/// How a key of zero_optimization is written.
enum class ZeroValue : std::uint8_t { flag, count, other };

/// One key of DeepSpeedZeroConfig.
struct ZeroKey {
    std::string_view name;  ///< as DeepSpeed's documentation writes it
    std::string_view
        other_name;  ///< pydantic's populate_by_name takes the field's own name as well; "" = the same
    ZeroValue value = ZeroValue::flag;
    std::uint8_t stages = 0;  ///< bit s: has an effect at stage s
    bool planned = false;     ///< decides memory or communication: handed on to the plan
};

/// Every key of zero_optimization that current DeepSpeed knows; the class forbids others.
/// source: deepspeed/runtime/zero/config.py (DeepSpeedZeroConfig), config_utils.py (extra="forbid")
std::span<const ZeroKey> zero_keys();
const ZeroKey* find_zero_key(std::string_view name);

/// Keys of the file's top level; DeepSpeed looks them up one by one and never sees others.
/// source: deepspeed/runtime/config.py, constants.py and the sections' own constants
std::span<const std::string_view> deepspeed_top_keys();
/// Keys of a section whose class forbids others: bf16, fp16, offload_param, offload_optimizer; empty for a
/// section that forbids none. source: runtime/precision_config.py, runtime/zero/offload_config.py
std::span<const std::string_view> deepspeed_section_keys(std::string_view section);

}  // namespace zeroplan
