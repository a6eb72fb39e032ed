#include "import/accelerate_parts.hpp"

namespace zeroplan {

/// source: accelerate/utils/dataclasses.py, MegatronLMPlugin
void import_megatron_plugin(const YamlSection& config) {
    config.state_word("/training/engine", "megatron", "distributed_type");
    const auto section = config.section("megatron_lm_config");
    if (!section) return;
    struct Degree {
        const char *key, *pointer;
    };
    for (const Degree& degree :
         {Degree{"megatron_lm_tp_degree", "/training/tensor_parallel"},
          Degree{"megatron_lm_pp_degree", "/training/pipeline_parallel"},
          Degree{"megatron_lm_num_micro_batches", "/training/gradient_accumulation_steps"}})
        if (const auto size = section->integer(degree.key); size && *size >= 1)
            section->state(degree.pointer, std::to_string(*size), degree.key);
    if (section->flag("megatron_lm_sequence_parallelism") == true)
        section->state("/training/sequence_parallel", "true", "megatron_lm_sequence_parallelism");
    if (section->flag("megatron_lm_recompute_activations") == true)
        section->state_word("/training/recompute", "selective", "megatron_lm_recompute_activations");
    if (const auto distributed = section->flag("megatron_lm_use_distributed_optimizer"))
        section->state("/training/zero_stage", *distributed ? "1" : "0",
                       "megatron_lm_use_distributed_optimizer");
}

}  // namespace zeroplan
