#pragma once
#include "import/yaml_section.hpp"

namespace zeroplan {

/// fsdp_config and parallelism_config. `processes_per_machine` is the shard group of the hybrid strategies; 0
/// = unknown. source: accelerate/utils/dataclasses.py, FullyShardedDataParallelPlugin
void import_fsdp_plugin(const YamlSection& config, std::uint64_t processes_per_machine);

/// deepspeed_config: the file it names, or the configuration that DeepSpeedPlugin makes of its keys, read as
/// any other DeepSpeed configuration. source: accelerate/utils/dataclasses.py, DeepSpeedPlugin
void import_deepspeed_plugin(const YamlSection& config, const ImportContext& context);

/// megatron_lm_config.
void import_megatron_plugin(const YamlSection& config);

}  // namespace zeroplan
