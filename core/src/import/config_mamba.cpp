#include <nlohmann/json.hpp>

#include "architectures/mamba.hpp"
#include "import/config_other.hpp"

namespace zeroplan {

// Defaults of transformers' configuration_mamba.py.
ReadConfig read_mamba(const ConfigObject& config, const std::string& name) {
    MambaConfig mamba;
    mamba.name = name;
    mamba.vocab_size = size_or(config, {"vocab_size"}, 50280);
    mamba.hidden_size = size_or(config, {"hidden_size", "d_model"}, 768);
    mamba.num_hidden_layers = layers_or(config, {"num_hidden_layers", "n_layer"}, 32);
    mamba.intermediate_size = size_or(config, {"expand"}, 2) * mamba.hidden_size;
    mamba.state_size = size_or(config, {"state_size"}, 16);
    mamba.conv_kernel = size_or(config, {"conv_kernel"}, 4);
    const nlohmann::json* rank = config.holder("time_step_rank").find("time_step_rank");
    const bool automatic = rank == nullptr || rank->is_string();
    mamba.time_step_rank = automatic ? (mamba.hidden_size + 15) / 16 : size_or(config, {"time_step_rank"}, 1);
    mamba.bias = config.boolean("use_bias").value_or(false);
    mamba.conv_bias = config.boolean("use_conv_bias").value_or(true);
    mamba.tie_word_embeddings = config.boolean("tie_word_embeddings").value_or(true);
    ReadConfig result;
    result.notes.push_back("Mamba's fused kernels (mamba_inner_fn) are assumed");
    result.build = [mamba](const LoweringOptions& options) { return build_mamba(mamba, options); };
    return result;
}

}  // namespace zeroplan
